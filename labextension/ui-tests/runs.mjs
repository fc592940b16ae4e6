// The sidebar of runs and all around it in a real JupyterLab: `npm run ui:runs`, after `make install-test`.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { here, python, shots, withJupyter } from './jupyter.mjs';
import { kernelIdle, openNotebook, runCell, shutDownKernels, until, writeNotebook } from './notebook.mjs';

const START = `%%cutegen --name live --device emulator --max-steps 3
def reference(x):  # x: f32[64, 256]
    return torch.softmax(x, dim=-1)`;

const errors = [];
const picture = (page, name) => page.screenshot({ path: `${shots}/runs-${name}.png` });
const sidebar = page => page.locator('#cutegen-runs');
const row = (page, text) => sidebar(page).locator('.cg-run', { hasText: text });
const within = (page, text, name) => row(page, text).getByRole('button', { name, exact: false });

function prepare(root) {
  execFileSync(python, [`${here}stored_runs.py`, root], {
    cwd: join(here, '../..'),
    env: { ...process.env, PYTHONPATH: join(here, '../..') }
  });
  writeNotebook(join(root, 'live.ipynb'), ['%load_ext cutegen_lab', START]);
}

async function showRuns(page) {
  await page.locator('.jp-SideBar [data-id="cutegen-runs"]').click();
  await sidebar(page).getByLabel('Search runs').waitFor();
}

async function listed(page, base) {
  await page.goto(`${base}/lab?reset`);
  await page.locator('.jp-LauncherCard', { hasText: 'New CuTeGen notebook' }).waitFor();
  await page
    .locator('.jp-LauncherCard', { hasText: 'From a PyTorch reference to an approved kernel' })
    .waitFor();
  await showRuns(page);
  await row(page, 'softmax').waitFor();
  assert.equal(await sidebar(page).locator('.cg-run').count(), 5);
  assert.match(await row(page, 'softmax').innerText(), /Done · accepted · 2\.5× c1 \(predicted\)/);
  assert.match(await row(page, 'rms_norm').innerText(), /Interrupted · at review/);
  assert.match(await sidebar(page).innerText(), /<img src=x.*\\u202egnp/, 'hostile text is text');
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  await picture(page, 'light');
}

async function searched(page) {
  const search = sidebar(page).getByLabel('Search runs');
  await search.fill('rms');
  await row(page, 'softmax').waitFor({ state: 'detached' });
  assert.equal(await sidebar(page).locator('.cg-run').count(), 1);
  await search.fill('no such run');
  await sidebar(page).getByText('No run fits.').waitFor();
  await picture(page, 'none-fits');
  await sidebar(page).getByRole('button', { name: 'Show all' }).click();
  await sidebar(page).getByLabel('State').selectOption('done');
  await row(page, 'rms_norm').waitFor({ state: 'detached' });
  await sidebar(page).getByLabel('State').selectOption('');
  await row(page, 'rms_norm').waitFor();
}

async function renamedAndTrashed(page) {
  await row(page, 'softmax').locator('.cg-run-open').focus();
  await page.keyboard.press('F2');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('The fast one');
  await page.keyboard.press('Enter');
  await row(page, 'The fast one').waitFor();
  await sidebar(page).getByRole('button', { name: 'Undo' }).click();
  await row(page, 'softmax').waitFor();
  await row(page, 'rms_norm').locator('.cg-run-open').focus();
  await page.keyboard.press('Delete');
  await row(page, 'rms_norm').waitFor({ state: 'detached' });
  await picture(page, 'trashed');
  await sidebar(page).getByRole('button', { name: 'Undo' }).click();
  await row(page, 'rms_norm').waitFor();
  await row(page, 'gelu').hover();
  await within(page, 'gelu', 'Trash').click();
  await sidebar(page).getByRole('button', { name: 'Trash (1)' }).click();
  await row(page, 'gelu').hover();
  await within(page, 'gelu', 'Put back').click();
  await sidebar(page).getByRole('button', { name: 'Back to runs' }).click();
  await row(page, 'gelu').waitFor();
}

async function compared(page) {
  await row(page, 'softmax').hover();
  await within(page, 'softmax', 'Compare').click();
  await row(page, 'rms_norm').hover();
  await within(page, 'rms_norm', 'Compare with softmax').click();
  await until(
    'two runs beside each other',
    async () => (await page.locator('.cg-page:visible').count()) === 2
  );
  await page.locator('.cg-page .cg-root', { hasText: 'c2' }).first().waitFor();
  await picture(page, 'compared');
}

async function filesOpen(page, base) {
  await page.goto(`${base}/lab/tree/sent.cutegen?reset`);
  const tab = page.locator('.cg-page:visible');
  await tab.locator('.cg-root', { hasText: 'softmax' }).waitFor();
  await picture(page, 'archive');
  await page.goto(`${base}/lab/tree/broken.cutegen?reset`);
  await page.locator('.cg-page-failed', { hasText: 'damaged' }).waitFor();
  await picture(page, 'archive-broken');
}

async function aRunOutlivesItsKernel(page, base) {
  await openNotebook(page, base, 'live.ipynb');
  await kernelIdle(page);
  await showRuns(page);
  await runCell(page, '%load_ext cutegen_lab');
  await runCell(page, '%%cutegen');
  await page.locator('.jp-Launcher, .lm-DockPanel').first().waitFor();
  const status = page.locator('.cg-statusbar button');
  await until(
    'the status bar says that it waits',
    async () => /1 awaits you/.test(await status.innerText()),
    180_000
  );
  assert.match(await row(page, /^!live/).innerText(), /Awaits you/);
  await picture(page, 'awaits');
  await row(page, /^!live/)
    .locator('.cg-run-open')
    .press('Enter');
  const tab = page.locator('.cg-page:visible .cg-root');
  await tab.getByText('c1').first().waitFor();
  assert.equal(await tab.getByRole('button', { name: 'Approve c1' }).isDisabled(), true);
  await picture(page, 'tab');
  assert.ok((await shutDownKernels(base)) > 0);
  await row(page, 'Interrupted · at review').filter({ hasText: 'live' }).waitFor();
  assert.equal(await tab.getByText('c1').first().isVisible(), true, 'the tab outlives the kernel');
  await tab.getByText('Interrupted', { exact: false }).first().waitFor();
  await picture(page, 'killed');
  await page.reload();
  await page.locator('.lm-TabBar-tabLabel', { hasText: /^live-/ }).click();
  await page.locator('.cg-page:visible .cg-root').getByText('c1').first().waitFor();
  const dialog = page.locator('.jp-Dialog');
  await page.addLocatorHandler(dialog, () => dialog.locator('.jp-mod-accept').click());
  await page.getByRole('button', { name: 'Resume in a notebook' }).click();
  await page
    .locator('.cg-live .cg-root')
    .getByRole('button', { name: 'Approve c1' })
    .waitFor({ timeout: 180_000 });
  const note = page.locator('.Toastify__toast', { hasText: 'awaits your review' });
  await picture(page, 'resumed');
  return (await note.count()) > 0;
}

async function darkAndNarrow(page) {
  await page.keyboard.press('Control+Shift+c');
  await page.locator('#modal-command-palette input').fill('Use Theme: JupyterLab Dark');
  await page.keyboard.press('Enter');
  await page.locator('body[data-jp-theme-light="false"]').waitFor({ state: 'attached' });
  await page.waitForTimeout(1500);
  await picture(page, 'dark');
  await page.setViewportSize({ width: 620, height: 900 });
  await page.waitForTimeout(1000);
  await picture(page, '620');
}

await withJupyter(
  'runs',
  prepare,
  async ({ base, page }) => {
    page.on('pageerror', error => errors.push(error.message));
    page.on('console', message => message.type() === 'error' && errors.push(message.text()));
    await listed(page, base);
    await searched(page);
    await renamedAndTrashed(page);
    await compared(page);
    await filesOpen(page, base);
    await aRunOutlivesItsKernel(page, base);
    await darkAndNarrow(page);
    const own = errors.filter(each => /cutegen/i.test(each));
    assert.deepEqual(own, [], 'no errors in the console');
    console.log(
      `runs are listed, searched, renamed, trashed, compared, outlive kernels; pictures in ${shots}`
    );
    console.log(errors.length ? `errors of others: ${errors.join(' | ')}` : 'no errors in the console');
  },
  { size: [1440, 900] }
);
