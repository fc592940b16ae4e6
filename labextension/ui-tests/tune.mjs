// A search in a real JupyterLab: it lets other cells run, is cancelled by its button, goes on, and is whole when saved.
// `npm run ui:tune`, after `make install`.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { shots, withJupyter } from './jupyter.mjs';
import { openNotebook, runCell, savedOutputs, shutDownKernels, until, writeNotebook } from './notebook.mjs';

const NAME = 'tune.ipynb';
const PLOT = 'application/vnd.plotly.v1+json';
const SEARCH = `%%cutegen_tune --name softmax --device emulator --budget 60 --seed 3
def reference(x):  # x: bf16[256, 2048]; x: bf16[512, 1024]
    return torch.softmax(x, dim=-1)`;
const SOURCES = [
  '%load_ext cutegen_lab',
  SEARCH,
  'print("not", "blocked", search.status)',
  'again = search.resume(budget=len(search.trace.points) + 4)\nagain'
];

const drawn = page =>
  until('evaluations are drawn', async () => (await page.locator('.scatterlayer .point').count()) > 6);
const picture = (page, name) => page.screenshot({ path: `${shots}/tune-${name}.png` });

async function saved(page, path, count) {
  return until('a saved notebook that is whole', async () => {
    await page.keyboard.press('Control+s');
    await page.waitForTimeout(600);
    const found = savedOutputs(path);
    const live = found.some(output => output.data?.['application/vnd.jupyter.widget-view+json']);
    const plots = found.filter(output => output.data?.[PLOT]);
    return !live && plots.length === count ? found : null;
  });
}

await withJupyter(
  'tune',
  root => writeNotebook(join(root, NAME), SOURCES),
  async ({ base, root, page }) => {
    await openNotebook(page, base, NAME);
    await runCell(page, '%load_ext');
    await runCell(page, '%%cutegen_tune');
    const second = await runCell(page, 'print("not"');
    assert.match(await second.locator('.jp-OutputArea').innerText(), /not blocked running/);
    await drawn(page);
    await page.getByRole('button', { name: 'Cancel' }).scrollIntoViewIfNeeded();
    await picture(page, 'live');

    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('the same search goes on from here').waitFor();
    await picture(page, 'cancelled');

    await runCell(page, 'again =');
    const words = page.getByText(/verdict: passed/);
    await words.first().waitFor();
    await words.first().scrollIntoViewIfNeeded();
    await page.waitForTimeout(1500);
    await picture(page, 'done');
    const whole = await saved(page, join(root, NAME), 2);
    const text = JSON.stringify(whole);
    assert.ok(text.includes('predicted times by workload') && text.includes('nothing was measured'));

    await shutDownKernels(base);
    await openNotebook(page, base, NAME);
    await page.locator('.jp-RenderedPlotly').first().waitFor(); // an image, until a pointer is over it
    assert.equal(await page.getByText('Error displaying widget').count(), 0);
    await picture(page, 'reopened');
  }
);
console.log('a search in JupyterLab: live, cancelled, resumed, saved');
