// What a person does in a notebook, and what a saved notebook holds.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { PATIENCE_MS } from './jupyter.mjs';

export const RUN_MIME = 'application/vnd.cutegen.run+json';
export const WIDGET_MIME = 'application/vnd.jupyter.widget-view+json';
const PYTHON_KERNEL = { name: 'python3', display_name: 'Python 3', language: 'python' };

/** Writes a notebook of code cells; `kernelspec: null` makes one that names no kernel. */
export function writeNotebook(path, sources, { outputs = [], kernelspec = PYTHON_KERNEL } = {}) {
  const cells = sources.map((source, index) => ({
    id: `cell-${index}`,
    cell_type: 'code',
    metadata: {},
    source,
    execution_count: null,
    outputs: outputs[index] ?? []
  }));
  const metadata = kernelspec === null ? {} : { kernelspec };
  writeFileSync(path, JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata, cells }));
}

/** The outputs of a saved notebook; none while Jupyter writes the file, which is cut off then. */
export function savedOutputs(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).cells.flatMap(cell => cell.outputs ?? []);
  } catch (error) {
    if (error instanceof SyntaxError) {
      return [];
    }
    throw error;
  }
}

/** The bundles with a run in a saved notebook, in order. */
export function savedBundles(path) {
  return savedOutputs(path)
    .map(output => output.data)
    .filter(data => data?.[RUN_MIME] !== undefined)
    .map(data => ({ ...data, 'text/html': [data['text/html']].flat().join('') }));
}

export async function until(what, check, seconds = PATIENCE_MS / 1000) {
  for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
    const found = await check();
    if (found) {
      return found;
    }
    await new Promise(resolve => setTimeout(resolve, 200));
  }
  throw new Error(`${what}: not within ${seconds} s`);
}

/** Saves with the keyboard, and reads the first run once the file holds what `fresh` asks for. */
export async function save(page, path, fresh) {
  return until(`a saved run that is fresh (${fresh})`, async () => {
    await page.keyboard.press('Control+s');
    await page.waitForTimeout(600);
    const [bundle] = savedBundles(path);
    return bundle !== undefined && fresh(bundle[RUN_MIME]) ? bundle : null;
  });
}

/** `asks`: JupyterLab's question for a kernel is left to the caller. */
export async function openNotebook(page, base, name, { asks = false } = {}) {
  const question = page.locator('.jp-Dialog', { hasText: 'Select Kernel' });
  await page.removeLocatorHandler(question);
  if (!asks) {
    // A machine with much to do starts the kernel late, and JupyterLab asks meanwhile. Asked before its session is
    // there, it does not take the answer: so it is answered again, rather than waited for.
    await page.addLocatorHandler(question, () => question.locator('.jp-mod-accept').click(), {
      noWaitAfter: true
    });
  }
  await page.goto(`${base}/lab/tree/${name}?reset`);
  await page.locator('.jp-NotebookPanel:visible .jp-Notebook').waitFor();
}

export async function kernelIdle(page) {
  await page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').waitFor();
}

/** Runs the first cell that starts with this text, and waits until it has run. */
export async function runCell(page, text) {
  const cell = page.locator('.jp-Notebook .jp-CodeCell', { hasText: text }).first();
  const prompt = cell.locator('.jp-InputPrompt');
  const before = await prompt.innerText();
  await until(`${text} has run`, async () => {
    if ((await prompt.innerText()) === before) {
      await cell.locator('.jp-InputArea .cm-content').click();
      await page.keyboard.press('Control+Enter');
      await page.waitForTimeout(500);
    }
    const now = await prompt.innerText();
    return now !== before && /\d/.test(now);
  });
  return cell;
}

export const LIVE = '.cg-live .cg-root';
/** The first live view of a run that is in sight. */
export const liveRun = page => page.locator(`${LIVE}:visible`).first();
export const cells = page => page.locator('.jp-Notebook .jp-Cell');

/** Presses a key on the selected candidate, which is the widget's alone: in the notebook, A would insert a cell. */
export async function press(page, key, done) {
  const kinds = () =>
    cells(page).evaluateAll(all =>
      all.map(({ classList }) => [...classList].filter(each => /^jp-(\w+Cell|mod-active)$/.test(each)).join())
    );
  await liveRun(page).locator('[role=treeitem][aria-selected=true]').focus();
  const before = await kinds();
  await page.keyboard.press(key);
  await done();
  assert.deepEqual(await kinds(), before, `${key} does nothing to the notebook`);
}

export async function menu(page, name, item) {
  await page.locator('.lm-MenuBar-itemLabel', { hasText: new RegExp(`^${name}$`) }).click();
  await page.locator('.lm-Menu-itemLabel', { hasText: item }).first().click();
}

/** Ends every session of the server, as a person does who closes the lid and comes back next week. */
export async function shutDownKernels(base) {
  const xsrf = async () => {
    const response = await fetch(`${base}/lab`);
    const cookie = response.headers.getSetCookie().find(each => each.startsWith('_xsrf=')) ?? '';
    return cookie.split(';')[0];
  };
  const cookie = await xsrf();
  const headers = { cookie, 'x-xsrftoken': cookie.replace('_xsrf=', '') };
  const sessions = await (await fetch(`${base}/api/sessions`, { headers })).json();
  for (const { id } of sessions) {
    await fetch(`${base}/api/sessions/${id}`, { method: 'DELETE', headers });
  }
  return sessions.length;
}

/** The candidate of a saved run with this id. */
export const find = (run, id) => run.candidates.find(candidate => candidate.id === id);
/** Whether a saved run waits for the answer to this candidate. */
export const atReview = id => run => run.status === 'review' && run.current_id === id;
