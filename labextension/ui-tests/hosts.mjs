// The widget in hosts other than JupyterLab: `npm run ui:hosts` (both) or `npm run ui:hosts marimo`, after `make install`
// and `.venv/bin/pip install notebook marimo`. In each, a run is started, approved and refined with the widget's buttons.
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { here, shots, withJupyter, withServer } from './jupyter.mjs';
import { until, writeNotebook } from './notebook.mjs';

const PATIENCE = { timeout: 300_000 }; // a busy machine compiles slowly
const START = `%%cutegen --name softmax --device emulator --provider templates:vec=1,threads_per_row=32,rows_per_block=1,loads=1
def reference(x):  # x: f32[256, 1024]
    return torch.softmax(x, dim=-1)`;

/** Reviews in the widget: c1 is approved, and c2, which comes of it, can be. */
async function refine(page, name) {
  const button = text => page.getByRole('button', { name: text, exact: true }).first();
  await button('Approve c1').waitFor(PATIENCE);
  await page.screenshot({ path: `${shots}/hosts-${name}-review.png` });
  await button('Approve c1').click();
  await button('Approve c2').waitFor(PATIENCE);
  await page.screenshot({ path: `${shots}/hosts-${name}-refined.png` });
}

const HOSTS = {
  notebook: () =>
    withJupyter(
      'hosts-notebook',
      root => writeNotebook(join(root, 'run.ipynb'), ['%load_ext cutegen_lab', START]),
      async ({ base, page }) => {
        await page.goto(`${base}/notebooks/run.ipynb`);
        await page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').waitFor();
        await until('all cells run', async () => {
          await page.locator('.lm-MenuBar-itemLabel', { hasText: /^Run$/ }).click();
          await page.locator('.lm-Menu-itemLabel', { hasText: 'Run All Cells' }).first().click();
          await page.waitForTimeout(3000);
          return (await page.locator('.jp-InputPrompt', { hasText: /\[[*1]\]:/ }).count()) > 0;
        });
        await refine(page, 'notebook');
      },
      { app: 'notebook' }
    ),
  marimo: () =>
    withServer(
      'hosts-marimo',
      root => copyFileSync(`${here}marimo_run.py`, join(root, 'run.py')),
      (_, port) => ['marimo', 'run', 'run.py', '--headless', '--no-token', `--port=${port}`],
      async ({ base, page }) => {
        await page.goto(base);
        await refine(page, 'marimo');
        const shown = await page.locator('body').innerText();
        assert.match(
          shown,
          /softmax on H200/,
          'a run that is the value of a cell is shown as its static view'
        );
      },
      { path: '/health' }
    )
};

const names = process.argv.slice(2);
for (const name of names.length > 0 ? names : Object.keys(HOSTS)) {
  await HOSTS[name]();
  console.log(`${name}: a run was started, approved and refined; pictures in ${shots}`);
}
