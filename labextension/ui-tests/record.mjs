// Runs shared notebooks in a real JupyterLab and saves them with what a reader will see: `npm run ui:record
// 01_quickstart.ipynb`, after `make install`.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { here, shots, withJupyter } from './jupyter.mjs';
import { kernelIdle, menu, openNotebook, until } from './notebook.mjs';

const shared = `${here}../../notebooks`;
const checkout = `${resolve(`${here}../..`)}/`;
const names = process.argv.slice(2);
if (names.length === 0) {
  throw new Error('name the notebooks under notebooks/ to record');
}

function code(text) {
  return JSON.parse(text).cells.filter(cell => cell.cell_type === 'code');
}

/** A copy that was never run. */
function fresh(root, name) {
  const notebook = JSON.parse(readFileSync(join(shared, name), 'utf8'));
  const plain = cell => (cell.cell_type === 'code' ? { ...cell, outputs: [], execution_count: null } : cell);
  writeFileSync(join(root, name), JSON.stringify({ ...notebook, cells: notebook.cells.map(plain) }));
}

/** The notebook as JupyterLab saves it; null while a cell has not run, and an exception if one failed. */
async function saved(page, path) {
  await page.keyboard.press('Control+s');
  await page.waitForTimeout(1000);
  const text = readFileSync(path, 'utf8');
  if (!text.trimEnd().endsWith('}')) {
    return null; // JupyterLab empties the file before it writes it
  }
  const cells = code(text);
  const meant = cell => (cell.metadata.tags ?? []).includes('raises-exception');
  const outputs = cells.filter(cell => !meant(cell)).flatMap(cell => cell.outputs);
  const failure = outputs.find(output => output.output_type === 'error');
  if (failure) {
    throw new Error(`${failure.ename}: ${failure.evalue}`);
  }
  return cells.every((cell, index) => cell.execution_count === index + 1) ? text : null;
}

async function record(page, base, root, name) {
  const path = join(root, name);
  await openNotebook(page, base, name);
  await kernelIdle(page);
  await until(`${name}, running`, async () => {
    await menu(page, 'Run', 'Run All Cells'); // now and then JupyterLab does not take the first
    await page.waitForTimeout(3000);
    return (await page.locator('.jp-InputPrompt', { hasText: /\[[*1]\]:/ }).count()) > 0;
  });
  // The file says when all have run: JupyterLab detaches the prompts of cells that are out of sight.
  await until(`${name}, run`, () => saved(page, path), 900);
  await kernelIdle(page);
  await page.waitForTimeout(2000); // the last states of widgets
  const text = await until(`${name}, saved`, () => saved(page, path));
  await page.screenshot({ path: `${shots}/record-${name}.png` });
  const notebook = JSON.parse(text.replaceAll(checkout, '')); // a reader's checkout lies elsewhere
  delete notebook.metadata.widgets; // megabytes of plotly, of widgets whose place static output has taken
  writeFileSync(join(shared, name), `${JSON.stringify(notebook, null, 1)}\n`);
}

await withJupyter(
  'record',
  root => names.forEach(name => fresh(root, name)),
  async ({ base, page, root }) => {
    for (const name of names) {
      await record(page, base, root, name);
    }
  }
);
