// One run in two tabs, and through the end of its server, under a prefix as JupyterHub gives it: `npm run ui:hub`, after
// `npm run build`.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { part, shots, withJupyter } from './jupyter.mjs';
import { kernelIdle, liveRun, openNotebook, runCell, save, until, writeNotebook } from './notebook.mjs';

const START = `%%cutegen --name live --device emulator --max-steps 6 --provider templates:vec=1,threads_per_row=32,rows_per_block=1,loads=1
def reference(x):  # x: f32[64, 1024]
    return torch.softmax(x, dim=-1)`;
const NAME = 'live.ipynb';

const picture = (page, name) => page.screenshot({ path: `${shots}/hub-${name}.png` });
const sidebar = page => page.locator('#cutegen-runs');
const row = page => sidebar(page).locator('.cg-run', { hasText: 'live' });
const button = (page, name) => liveRun(page).getByRole('button', { name, exact: true });
const notes = page => liveRun(page).getByRole('list', { name: 'Comments and pins' });

async function showRuns(page) {
  await page.locator('.jp-SideBar [data-id="cutegen-runs"]').click();
  await sidebar(page).getByLabel('Search runs').waitFor();
}

/** An answer in one tab is seen in the other: in the notebook, and in the run's own tab, which has no kernel. */
async function twoTabs(page, base, root) {
  await openNotebook(page, base, NAME);
  await kernelIdle(page);
  await runCell(page, '%load_ext cutegen_lab');
  await runCell(page, '%%cutegen');
  await button(page, 'Approve c1').waitFor();
  await save(page, join(root, NAME), run => run.status === 'review' && run.current_id === 'c1');

  const other = await page.context().newPage();
  await other.goto(`${base}/lab/workspaces/other?reset`);
  await showRuns(other);
  await row(other).locator('.cg-run-open').click();
  const fromStore = other.locator('.cg-page:visible .cg-root');
  await fromStore.getByRole('treeitem', { name: /^c1 / }).waitFor();
  await button(page, 'Approve c1').click();
  await fromStore.getByRole('treeitem', { name: /^c2 / }).waitFor();
  await button(page, 'Approve c2').waitFor();
  await picture(other, 'from-store');

  await row(other).hover();
  await row(other).getByRole('button', { name: 'Go to its notebook' }).click();
  await button(other, 'Approve c2').waitFor();
  await picture(other, 'second-tab');
  await button(other, 'Approve c2').click();
  await button(page, 'Approve c3').waitFor();
  await button(other, 'Approve c3').waitFor();
  await other.close();
}

/** The server and its kernels end. The page says so, finds the new one by itself, and the run goes on where it stood. */
async function serverRestart(page, server) {
  await button(page, 'Pin…').click();
  await page.getByLabel('Later candidates must not change').selectOption('threads_per_row');
  await button(page, 'Pin').click();
  await notes(page).getByText('threads_per_row of c3').waitFor();
  await showRuns(page);
  const status = page.locator('.cg-statusbar button');
  await server.stop();
  await until('the page says that it is not connected', async () =>
    /not connected/.test(await status.innerText())
  );
  await server.start();
  await until('the page is connected again', async () => !/not connected/.test(await status.innerText()));
  await page.goto(`${server.base}/lab?reset`);
  await showRuns(page);
  await row(page).getByText('Interrupted').waitFor();
  await picture(page, 'restarted');
  await row(page).hover();
  await row(page)
    .getByRole('button', { name: /^Resume/ })
    .click();
  await button(page, 'Approve c3').waitFor();
  await notes(page).getByText('threads_per_row of c3').waitFor();
  await picture(page, 'resumed');
  await button(page, 'Approve c3').click();
  await button(page, 'Approve c4').waitFor();
  await notes(page).getByText('kept').waitFor();
  await picture(page, 'approved');
  await button(page, 'Stop').click();
  await row(page).getByText('Done').waitFor();
}

await withJupyter(
  'hub',
  root => writeNotebook(join(root, NAME), ['%load_ext cutegen_lab', START]),
  async ({ base, root, page, server }) => {
    const lost = [];
    page.on('response', response => {
      if (response.status() === 404 && /cutegen/.test(response.url())) {
        lost.push(response.url());
      }
    });
    await part(twoTabs, page, base, root);
    await part(serverRestart, page, server);
    assert.deepEqual(lost, [], 'everything of ours is found under the prefix');
    console.log(
      `one run in two tabs and through the end of its server, under a prefix; pictures in ${shots}`
    );
  },
  { size: [1440, 1100], prefix: '/user/ada' }
);
