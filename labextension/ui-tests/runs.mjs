// The sidebar of runs and all around it in a real JupyterLab: `npm run ui:runs`, after `make install-test`.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { accessible, here, part, python, shots, withJupyter } from './jupyter.mjs';
import {
  kernelIdle,
  liveRun,
  openNotebook,
  press,
  runCell,
  shutDownKernels,
  until,
  writeNotebook
} from './notebook.mjs';

const HOSTILE = 'live<img/src/onerror=globalThis.pwned=2>';
const START = `%%cutegen --name ${HOSTILE} --device emulator --max-steps 3
def reference(x):  # x: f32[64, 256]
    return torch.softmax(x, dim=-1)`;

const SPEC = `%%cutespec --check
kernel linear for sm_90a
in  x: bf16[512, 256]  # rows
out y: bf16 = gelu(x, approximate="tanh")`;
const TUTORIALS = 9;
const SIZE = [1440, 900];

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
  writeNotebook(join(root, 'spec.ipynb'), [SPEC, 'def plain(x): return x']);
}

/** Text of a run was not executed. */
async function notExecuted(page) {
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
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
  const cards = page.locator('.jp-Launcher-section', { hasText: 'CuTeGen' }).locator('.jp-LauncherCard');
  assert.ok((await cards.count()) > TUTORIALS, 'a card for a new notebook, and one for each tutorial');
  await picture(page, 'launcher');
  await page.keyboard.press('Alt+Shift+R');
  await sidebar(page).getByLabel('Search runs').waitFor();
  await row(page, 'softmax').waitFor();
  assert.equal(await sidebar(page).locator('.cg-run').count(), 8);
  assert.match(await row(page, 'softmax').innerText(), /Done · accepted · 2\.5× c1 \(predicted\)/);
  assert.match(await row(page, 'rms_norm').innerText(), /Interrupted · at review/);
  assert.match(await sidebar(page).innerText(), /<img src=x.*\\u202egnp/, 'hostile text is text');
  await notExecuted(page);
  await accessible(page, 'the sidebar', '#cutegen-runs');
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

async function useTheme(page, name) {
  await page.keyboard.press('Control+Shift+c');
  await page.locator('#modal-command-palette input').fill(`Use Theme: ${name}`);
  await page.keyboard.press('Enter');
  await page.locator(`body[data-jp-theme-name="${name}"]`).waitFor({ state: 'attached' });
  await page.waitForTimeout(1500);
}

async function darkAndNarrow(page, what) {
  await useTheme(page, 'JupyterLab Dark');
  await accessible(page, 'the status bar in the dark', '.cg-statusbar');
  await picture(page, `${what}-dark`);
  await page.setViewportSize({ width: 620, height: 900 });
  await page.waitForTimeout(1000);
  await picture(page, `${what}-620`);
}

async function lightAndWide(page) {
  await page.setViewportSize({ width: SIZE[0], height: SIZE[1] });
  await useTheme(page, 'JupyterLab Light');
}

/** JupyterLab keeps the tabs some time after they change; a page that is loaded before has the tabs of before. */
async function layoutSaved(page, base, tab) {
  let before = '';
  await until('the layout with the tab is kept', async () => {
    const { data } = await page.evaluate(
      async url => (await fetch(url)).json(),
      `${base}/lab/api/workspaces/default`
    );
    const now = JSON.stringify(data['layout-restorer:data']?.main ?? '');
    const settled = now === before; // not between two of its changes
    before = now;
    await page.waitForTimeout(1500);
    return settled && tab.test(now);
  });
}

/** Compares two runs from the list; the tab with their comparison. */
async function compare(page, before, after) {
  await row(page, before).hover();
  await within(page, before, 'Compare').click();
  await row(page, after).hover();
  await within(page, after, `Compare with ${before}`).click();
  const tab = page.locator('.cg-page:visible .cg-compared');
  await tab.getByRole('button', { name: after }).waitFor();
  return tab;
}

/** The cells of a row of the numbers. */
const cells = (tab, label) =>
  tab.locator('tr', { has: tab.page().getByRole('rowheader', { name: label, exact: true }) }).locator('td');

async function compared(page, base) {
  const tab = await compare(page, 'scores from a model', 'scores from templates');
  assert.deepEqual(await cells(tab, 'Time').allInnerTexts(), [
    '71.8 µspredicted',
    '38.1 µspredicted',
    '−47%'
  ]);
  await tab
    .getByRole('textbox', { name: /^Source from/ })
    .locator('.cm-changedLine')
    .first()
    .waitFor();
  await accessible(page, 'the comparison', '.cg-compared');
  await picture(page, 'compared');
  await tab.getByLabel('Candidate of scores from a model').focus();
  await tab.getByLabel('Candidate of scores from templates').selectOption('c4');
  await tab.getByRole('columnheader', { name: 'scores from templates c4' }).waitFor();

  const measured = await compare(page, 'scores from templates', 'scores on a GPU');
  const [, , change] = await cells(measured, 'Time').allInnerTexts();
  assert.equal(change, 'not compared: one is measured, one predicted');
  assert.match((await cells(measured, 'Speedup over eager').allInnerTexts())[1], /^2\.66×/);
  await picture(page, 'compared-measured');
  await layoutSaved(page, base, /cutegen-comparisons:.*scores-0a03/);
  await page.reload();
  const label = page.locator('.lm-TabBar-tabLabel', { hasText: 'scores from templates · scores on a GPU' });
  await label.click();
  await cells(measured, 'Time').first().waitFor();
  await darkAndNarrow(page, 'compared');
  await lightAndWide(page);
  await measured.getByRole('button', { name: 'scores on a GPU' }).click();
  await page.locator('.lm-TabBar-tab.lm-mod-current', { hasText: 'scores-0a03' }).waitFor();
  await label.locator('xpath=..').locator('.lm-TabBar-tabCloseIcon').click();
  await label.waitFor({ state: 'detached' });
}

async function filesOpen(page, base) {
  await page.goto(`${base}/lab/tree/sent.cutegen?reset`);
  const tab = page.locator('.cg-page:visible');
  await tab.locator('.cg-root', { hasText: 'softmax' }).waitFor();
  await accessible(page, 'a file of a run', '.cg-page');
  await picture(page, 'archive');
  await page.goto(`${base}/lab/tree/broken.cutegen?reset`);
  await page.locator('.cg-page-failed', { hasText: 'damaged' }).waitFor();
  await picture(page, 'archive-broken');
}

/** Alt-Shift-N opens a notebook with the first cells. */
async function keyOpensANotebook(page) {
  await page.keyboard.press('Alt+Shift+N');
  const notebook = page.locator('.jp-NotebookPanel:visible');
  await notebook.locator('.jp-Cell', { hasText: '%%cutegen --name softmax' }).waitFor();
  await picture(page, 'new-notebook');
}

/** A spec's cell has the spec's colours, its neighbour Python's. */
async function specsAreColoured(page, base) {
  await openNotebook(page, base, 'spec.ipynb');
  await page.locator('.jp-CodeCell .cm-line span', { hasText: /^def$/ }).waitFor();
  const [spec, plain] = await page.locator('.jp-CodeCell .cm-content').all();
  const colour = async (cell, text) =>
    cell
      .locator('.cm-line span', { hasText: text })
      .first()
      .evaluate(span => getComputedStyle(span).color);
  const keyword = await colour(plain, /^def$/);
  for (const text of [/^kernel$/, /^in$/, /^out$/]) {
    assert.equal(await colour(spec, text), keyword, `${text} is a keyword`);
  }
  assert.equal(
    await colour(spec, /^bf16$/),
    await colour(spec, /^gelu$/),
    'dtypes and functions are built in'
  );
  assert.notEqual(await colour(spec, /^# rows$/), keyword);
  await picture(page, 'spec');
}

/** The settings editor has both pages, and takes changes: the status bar's stream goes on with one, X is to reject. */
async function settingsAreEdited(page) {
  await page.keyboard.press('Control+,');
  const editor = page.locator('#setting-editor, .jp-SettingsPanel').first();
  await editor.waitFor();
  await page.locator('.jp-PluginList-entry', { hasText: 'CuTeGen runs' }).click();
  const field = page.locator('.jp-FormGroup-content', { hasText: 'Seconds between looks' }).last();
  await field.locator('input').fill('0.5');
  await page.locator('.jp-PluginList-entry', { hasText: /^CuTeGen$/ }).click();
  await page.locator('input[label=reject]').fill('x');
  await until('the key is set', () =>
    page.evaluate(() => JSON.parse(document.documentElement.dataset.cutegenKeys).reject === 'x')
  );
  await picture(page, 'settings');
  const status = page.locator('.cg-statusbar button');
  await until('the status bar hears the server', async () => /emulator|H\d00/.test(await status.innerText()));
}

/** A run that begins to need an answer while its notebook is not in front tells so, and leads there. */
async function notified(page, title, notebook) {
  await page.keyboard.press('Control+Shift+l'); // a launcher in front of it
  await page.locator('.jp-Launcher:visible').waitFor();
  const note = page.locator('.Toastify__toast', { hasText: `${title} awaits your review` });
  await note.waitFor();
  await picture(page, `notified-${notebook}`);
  assert.equal(await page.locator('.Toastify__toast img, .jp-StatusBar-Widget img').count(), 0);
  await notExecuted(page);
  await note.getByRole('button', { name: 'Go there' }).click();
  await page
    .locator('.lm-TabBar-tab.jp-mod-current, .lm-mod-current', { hasText: notebook })
    .first()
    .waitFor();
}

/** The key that the settings gave to Reject does it, and the one that had it before does nothing. */
async function keyIsChanged(page) {
  const reason = liveRun(page).getByLabel('Why is c1 not good enough?');
  await press(page, 'r', () => page.waitForTimeout(500));
  assert.equal(await reason.count(), 0);
  await press(page, 'x', () => reason.waitFor());
  await reason.press('Escape');
}

/** What a kernel would be asked, the server is: plots, layouts, listings, files. */
async function askedWithoutAKernel(page, tab, root) {
  await tab.getByRole('tab', { name: 'Profile' }).click();
  await tab.locator('.cg-profile svg').first().waitFor();
  await picture(page, 'profile');
  await tab.getByRole('tab', { name: 'Layouts' }).click();
  await tab.locator('.cg-tab-panel svg rect').first().waitFor();
  await picture(page, 'layouts');
  await tab.getByRole('tab', { name: 'Review' }).click();
  await tab.getByRole('button', { name: 'PTX' }).click();
  await tab.locator('.cg-pane', { hasText: '.reg' }).first().waitFor();
  await picture(page, 'ptx');
  await tab.getByText('Export c1').click();
  await tab.getByRole('button', { name: 'view', exact: true }).click();
  await tab.getByText(/^Wrote live-.*\.cutegen-run\.json\.$/).waitFor();
  await picture(page, 'exported');
  await tab.getByRole('button', { name: 'page', exact: true }).click();
  const said = await tab.getByText(/^Wrote live-.*\.html\.$/).innerText();
  const html = await page.context().newPage();
  await html.goto(`file://${join(root, said.slice('Wrote '.length, -1))}`);
  await accessible(html, 'the HTML page of a run', 'html');
  await picture(html, 'html');
  await notExecuted(html);
  await html.close();
}

/** "Make a kernel of this" on a .py file: a notebook beside it, which runs at once. */
async function aKernelOfAFile(page, base) {
  await page.goto(`${base}/lab?reset`);
  const file = page.locator('.jp-DirListing-item', { hasText: 'problem.py' });
  await file.click({ button: 'right' });
  await picture(page, 'context-menu');
  await page.locator('.lm-Menu-itemLabel', { hasText: 'Make a kernel of this' }).click();
  await page
    .locator('.jp-NotebookPanel:visible .jp-CodeCell', { hasText: '%%cutegen --name problem' })
    .waitFor();
  await page.locator('.jp-InputPrompt', { hasText: '[2]:' }).waitFor();
  await notified(page, 'problem', 'problem');
  await page.locator('.cg-live .cg-root').getByRole('button', { name: 'Approve c1' }).waitFor();
  await accessible(page, 'the live run', '.cg-live .cg-root');
  await keyIsChanged(page);
  await picture(page, 'made');
}

async function aRunOutlivesItsKernel(page, base, root) {
  await openNotebook(page, base, 'live.ipynb');
  await kernelIdle(page);
  await showRuns(page);
  await runCell(page, '%load_ext cutegen_lab');
  await runCell(page, '%%cutegen');
  await notified(page, HOSTILE, 'live');
  const status = page.locator('.cg-statusbar button');
  await until('the status bar says that both wait', async () => /2 await you/.test(await status.innerText()));
  await accessible(page, 'the status bar', '.cg-statusbar');
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
  await accessible(page, "the run's tab", '.cg-page .cg-root');
  await layoutSaved(page, base, /cutegen-runs:.*live-/);
  await page.reload();
  await page.locator('.jp-Notebook-ExecutionIndicator').first().waitFor({ state: 'attached' }); // all tabs are back
  await page.locator('.lm-TabBar-tabLabel', { hasText: /^live-/ }).click();
  await tab.getByText('c1').first().waitFor();
  await askedWithoutAKernel(page, tab, root);
  const dialog = page.locator('.jp-Dialog');
  await page.addLocatorHandler(dialog, () => dialog.locator('.jp-mod-accept').click());
  await page.getByRole('button', { name: 'Resume in a notebook' }).click();
  await page.locator('.cg-live .cg-root').getByRole('button', { name: 'Approve c1' }).waitFor();
  await picture(page, 'resumed');
}

await withJupyter(
  'runs',
  prepare,
  async ({ base, page, root }) => {
    await part(listed, page, base);
    await part(searched, page);
    await part(renamedAndTrashed, page);
    await part(compared, page, base);
    await part(filesOpen, page, base);
    await part(keyOpensANotebook, page);
    await part(specsAreColoured, page, base);
    await part(settingsAreEdited, page);
    await part(aKernelOfAFile, page, base);
    await part(aRunOutlivesItsKernel, page, base, root);
    await part(darkAndNarrow, page, 'run');
    console.log(
      `runs are listed, searched, renamed, trashed, compared, told of, made of files, outlive kernels, are asked without one; pictures in ${shots}`
    );
  },
  { size: SIZE }
);
