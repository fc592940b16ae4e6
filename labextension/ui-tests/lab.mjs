// Drives a real JupyterLab: `npm run ui:lab`, after `make install`. Checks the launcher card, the command, the
// quickstart notebook, a saved run's output and a .cutegen-run.json file.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { here, part, shots, withJupyter } from './jupyter.mjs';
import { RUN_MIME, kernelIdle, openNotebook, writeNotebook } from './notebook.mjs';

const picture = (page, name) => page.screenshot({ path: `${shots}/lab-${name}.png` });

function prepare(root) {
  const run = JSON.parse(readFileSync(`${here}../tests/samples/review.json`, 'utf8'));
  writeFileSync(join(root, 'softmax.cutegen-run.json'), JSON.stringify(run));
  const data = { [RUN_MIME]: run, 'text/html': '<p>static html</p>', 'text/plain': 'a run' };
  const output = { output_type: 'display_data', metadata: {}, data };
  writeNotebook(join(root, 'saved.ipynb'), ['run'], { outputs: [[output]] });
}

async function launcherOpensTheQuickstart(page, base) {
  await page.goto(`${base}/lab?reset`);
  const card = page.locator('.jp-LauncherCard', { hasText: 'New CuTeGen notebook' });
  await card.waitFor();
  await picture(page, 'launcher');
  await card.click();
  // Cells fill in one by one.
  for (const text of ['%load_ext cutegen_lab', '%%cutegen --name softmax', 'A new kernel, step by step']) {
    await page.locator('.jp-Notebook .jp-Cell', { hasText: text }).waitFor();
  }
  await kernelIdle(page);
  assert.equal(await page.locator('.jp-Dialog').count(), 0, 'no dialog asks for a kernel');
  await picture(page, 'quickstart');
}

async function savedRunsAreShown(page, base) {
  await openNotebook(page, base, 'saved.ipynb');
  const saved = page.locator('.jp-OutputArea .cg-root');
  await saved.waitFor();
  assert.match(await saved.innerText(), /one warp group a row/);
  assert.equal(await saved.locator('[data-verb]').count(), 0, 'a saved run has no verbs');
  await picture(page, 'saved');

  await page.goto(`${base}/lab/tree/softmax.cutegen-run.json?reset`);
  await page.locator('.jp-MimeDocument .cg-root').waitFor();
  await picture(page, 'file');
}

await withJupyter(
  'lab',
  prepare,
  async ({ base, page }) => {
    await part(launcherOpensTheQuickstart, page, base);
    await part(savedRunsAreShown, page, base);
    console.log(
      `launcher, quickstart, saved output and run file are as they should be; pictures in ${shots}`
    );
  },
  { size: [1440, 1000] }
);
