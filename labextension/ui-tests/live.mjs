// Every action, really clicked, in a real JupyterLab with a live kernel: `npm run ui:live`, after `make install`.
// Then what is left of it: saved at review and opened without a kernel, and taken up again after a kernel restart.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessible, part, shots, withJupyter } from './jupyter.mjs';
import {
  LIVE,
  RUN_MIME,
  WIDGET_MIME,
  atReview,
  cells,
  find,
  kernelIdle,
  liveRun,
  menu,
  openNotebook,
  press,
  runCell,
  save,
  savedBundles,
  shutDownKernels,
  until,
  writeNotebook
} from './notebook.mjs';

// From a naive kernel, so that refinements gain.
const START = `%%cutegen --name softmax --device emulator --max-steps 12 --provider templates:vec=1,threads_per_row=32,rows_per_block=1,loads=1
def reference(x):  # x: f32[64, 1024]
    return torch.softmax(x, dim=-1)`;
const NAME = 'run.ipynb';
/** Cells of a second notebook: two runs, a layout, and what is typed into. */
const OTHERS = [
  '%load_ext cutegen_lab',
  ...['first', 'second'].map(
    name => `%%cutegen --name ${name} --device emulator
def reference(x):  # x: f32[64, 256]
    return torch.softmax(x, dim=-1)`
  ),
  '%cute_layout (8,8):(8,1) --swizzle 32B',
  ''
];
const FIRST_PAINT_MS = 300;
const STILL_PX = 4;
const SAVED = '.cg-output > .cg-mime .cg-root';

const picture = (page, name) => page.screenshot({ path: `${shots}/live-${name}.png` });
const button = (page, name) => liveRun(page).getByRole('button', { name, exact: true });

/** Clicks, once the button may be clicked; Playwright waits for that. */
const click = (page, name) => button(page, name).click();
const reviewing = (page, id) => button(page, `Approve ${id}`).waitFor();

/** Answers, and sees in every frame until `id` is at review that the view stays where it is; it keeps the keyboard. */
async function answer(page, id, steps) {
  const live = liveRun(page);
  await live.evaluate(element => element.scrollIntoView());
  const seen = await live.evaluateHandle(element => {
    const notebook = element.closest('.jp-WindowedPanel-outer');
    const place = () => [element.getBoundingClientRect().top, notebook.scrollTop];
    const start = place();
    const found = { moved: 0, scrolled: start[1], over: false };
    const look = () => {
      const now = place();
      found.moved = Math.max(found.moved, ...now.map((each, index) => Math.abs(each - start[index])));
      if (!found.over) {
        requestAnimationFrame(look);
      }
    };
    look();
    return found;
  });
  await steps();
  await reviewing(page, id);
  const { moved, scrolled } = await seen.evaluate(found => Object.assign(found, { over: true }));
  assert.ok(scrolled > 0, 'the notebook is scrolled, so that it could jump');
  assert.ok(moved <= STILL_PX, `the view moves by ${moved} px on the way to ${id}`);
  const kept = await live.evaluate(element => element.contains(document.activeElement));
  assert.ok(kept, `the keyboard stays in the view on the way to ${id}`);
}

/** On a cell, A inserts another one and R makes it raw; the widget takes neither as an answer. */
async function keysOfTheNotebook(page, id) {
  const count = await cells(page).count();
  await cells(page).last().locator('.jp-InputPrompt').click();
  await page.keyboard.press('a');
  await cells(page).nth(count).waitFor();
  await page.keyboard.press('r');
  await page.locator('.jp-RawCell').waitFor();
  await page.keyboard.press('e');
  assert.equal(await button(page, `Approve ${id}`).isEnabled(), true, `${id} is not answered`);
  assert.equal(await page.locator('[data-verb][aria-expanded=true]').count(), 0, 'no panel is open');
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  await cells(page).nth(count).waitFor({ state: 'detached' });
}

/** Stop stands in the first row of the buttons, at its right; the others take as many rows as they need. */
async function stopIsInTheFirstRow(page, rows) {
  const bar = page.locator(`${LIVE}:visible .cg-action-bar`).first();
  const boxes = await bar
    .locator('button[data-verb]')
    .evaluateAll(buttons =>
      buttons.map(each => ({ ...each.dataset, ...each.getBoundingClientRect().toJSON() }))
    );
  const stop = boxes.find(each => each.verb === 'stop');
  assert.equal(stop.top, boxes[0].top, 'Stop is in the first row');
  assert.ok(boxes.every(each => each.right <= stop.right));
  assert.ok(rows(new Set(boxes.map(each => each.top)).size), JSON.stringify(boxes));
}

/** c3 beside c1: numbers with their change, source and PTX. */
async function compared(page) {
  const live = liveRun(page);
  await live.getByRole('tab', { name: 'Compare' }).click();
  await live.locator('.cg-compare-head select').selectOption('c1');
  const numbers = live.getByRole('table', { name: 'Numbers of c1 and c3' });
  for (const name of [/^Time/, /^Registers/, /instructions/i]) {
    await numbers.getByRole('rowheader', { name }).first().waitFor();
  }
  await live.getByRole('textbox', { name: 'Source from c1 to c3' }).waitFor();
  await live.getByRole('button', { name: 'Compare PTX' }).click();
  await live.getByRole('textbox', { name: 'PTX from c1 to c3' }).locator('.cm-changedLine').first().waitFor();
  await picture(page, 'compare');
  await live.getByRole('tab', { name: 'Review' }).click();
}

/** Six answers; after each, the outcome as the page shows it and as the saved notebook holds it. */
async function everyAction(page, path) {
  const saved = async (id, message) => {
    await reviewing(page, id);
    const bundle = await save(page, path, atReview(id));
    assert.equal(bundle[WIDGET_MIME] !== undefined, true, 'at review the output is live');
    assert.ok(bundle['text/html'].includes(id), `${message}: the static HTML is as fresh`);
    return bundle[RUN_MIME];
  };

  await reviewing(page, 'c1');
  await picture(page, 'review');
  assert.equal(find(await saved('c1', 'start'), 'c1').verdict, 'passed');

  const reason = page.getByLabel('Why is c1 not good enough?');
  await press(page, 'r', () => reason.waitFor());
  await reason.press('Escape');
  await answer(page, 'c2', async () => {
    await click(page, 'Reject with reason…');
    await reason.fill('use fewer threads a row');
    await picture(page, 'reject');
    await click(page, 'Reject c1');
  });
  const rejected = await saved('c2', 'reject');
  assert.equal(find(rejected, 'c1').answer, 'rejected: use fewer threads a row');
  assert.equal(find(rejected, 'c1').accepted, false);

  await click(page, 'Pin…');
  await page.getByLabel('Later candidates must not change').selectOption('threads_per_row');
  await picture(page, 'pin');
  await click(page, 'Pin');
  await page.getByRole('list', { name: 'Comments and pins' }).getByText('threads_per_row of c2').waitFor();

  await keysOfTheNotebook(page, 'c2');
  await answer(page, 'c3', () => press(page, 'a', () => reviewing(page, 'c3')));
  const approved = await saved('c3', 'approve');
  const [pin] = find(approved, 'c3').notes;
  assert.deepEqual([pin?.what, pin?.pin, pin?.state], ['`threads_per_row` of c2', true, 'kept']);
  const threads = id => find(approved, id).config.find(each => each.name === 'threads_per_row').value;
  assert.equal(threads('c3'), threads('c2'), 'the provider leaves what is pinned');
  await picture(page, 'pin-kept');
  await compared(page);
  await click(page, `Lift ${pin.id}`);
  await page.getByRole('list', { name: 'Comments and pins' }).waitFor({ state: 'detached' });

  assert.equal(approved.incumbent_id, 'c2');
  assert.equal(find(approved, 'c3').parent_id, 'c2', 'the next refinement starts from what was approved');

  const selected = id =>
    liveRun(page)
      .getByRole('treeitem', { name: `${id} `, selected: true })
      .waitFor();
  await press(page, 'k', () => selected('c2'));
  await press(page, 'j', () => selected('c3'));
  await answer(page, 'c4', () => press(page, 't', () => reviewing(page, 'c4')));
  const retried = await saved('c4', 'retry');
  assert.equal(find(retried, 'c3').answer, 'retried');
  assert.equal(find(retried, 'c4').parent_id, 'c2', 'from the same parent');

  const area = page.getByLabel('Text of c4');
  await press(page, 'e', () => area.waitFor());
  await click(page, 'Close');
  await click(page, 'Edit…');
  await area.press('Control+End');
  const added = '# écrit à la main:\t"quotes", \\n and <b>tags</b>';
  await page.keyboard.insertText(added);
  await picture(page, 'edit');
  await stopIsInTheFirstRow(page, rows => rows === 1);
  const { width, height } = page.viewportSize();
  await page.setViewportSize({ width: 620, height });
  await page.waitForTimeout(1000);
  await button(page, 'Stop').scrollIntoViewIfNeeded();
  await picture(page, 'edit-620');
  await stopIsInTheFirstRow(page, rows => rows > 1);
  await page.setViewportSize({ width, height });
  await click(page, 'Run edited');
  const edited = await saved('c5', 'edit');
  const text = find(edited, 'c4').source + added;
  assert.equal(find(edited, 'c5').source, text, 'the edited text is exactly what runs next');
  assert.equal(find(edited, 'c4').answer, 'edited');

  await liveRun(page).getByRole('treeitem', { name: /^c1 / }).click();
  await picture(page, 'branch');
  await answer(page, 'c6', () => press(page, 'b', () => reviewing(page, 'c6')));
  const branched = await saved('c6', 'branch');
  assert.equal(find(branched, 'c6').parent_id, 'c1');
  assert.equal(find(branched, 'c5').answer, 'branched from c1');
}

/** A kernel from the widget's menu is judged again in a process of its own, and its file says so. */
async function exported(page, root) {
  await liveRun(page).getByText('Export c6').click();
  await button(page, 'kernel').click();
  const said = await liveRun(page)
    .getByText(/^Wrote .+-c6\.py\.$/)
    .innerText();
  const text = readFileSync(join(root, said.slice('Wrote '.length, -1)), 'utf8');
  assert.match(text, /^# judged again in a fresh process on [\d-]+ by .+: passed on emulator/m);
}

/** What a saved run looks like where no kernel can show it: our static view, and no word of a missing widget. */
async function staysStatic(page, id, name) {
  const saved = page.locator(`${SAVED}:visible`).first();
  await saved.getByText('Shown from the store: no kernel of this notebook drives the run.').waitFor();
  await saved.getByRole('button', { name: 'Resume in this notebook' }).waitFor();
  const output = await page.locator('.jp-OutputArea:visible').first().innerText();
  assert.match(output, new RegExp(`\\b${id}\\b`));
  assert.doesNotMatch(output, /Loading widget|model not found|Error displaying/);
  assert.equal(await page.locator(`${LIVE}:visible`).count(), 0);
  assert.equal(await page.locator('[data-verb]:visible').count(), 0, 'a saved run has no verbs');
  await accessible(page, 'a saved run', SAVED);
  await picture(page, name);
}

/** The form of a saved run for what knows HTML alone, as a page of its own. */
async function asHtml(page, html) {
  const other = await page.context().newPage();
  await other.setContent(`<!doctype html><html lang="en"><title>A run</title><body>${html}`);
  await accessible(other, 'the static HTML of a run', 'html');
  await picture(other, 'html');
  await other.close();
}

async function withoutKernel(page, base, root, id) {
  assert.ok((await shutDownKernels(base)) > 0, 'there was a kernel to end');
  await openNotebook(page, base, NAME);
  await kernelIdle(page); // A new one, that never heard of the run.
  await staysStatic(page, id, 'reopened');

  const [data] = savedBundles(join(root, NAME));
  await asHtml(page, data['text/html']);
  const outputs = [[{ output_type: 'display_data', metadata: {}, data }]];
  writeNotebook(join(root, 'none.ipynb'), ['run'], { outputs, kernelspec: null });
  await openNotebook(page, base, 'none.ipynb', { asks: true });
  const dialog = page.locator('.jp-Dialog');
  await dialog.getByRole('button', { name: 'No Kernel' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.locator(SAVED).first().waitFor();
  await picture(page, 'no-kernel');
}

async function afterRestart(page, base, path) {
  await openNotebook(page, base, NAME);
  await kernelIdle(page);
  await runCell(page, '%load_ext cutegen_lab');
  await runCell(page, '%cutegen show');
  await reviewing(page, 'c6');
  await menu(page, 'Kernel', /^Restart Kernel…$/);
  await page.locator('.jp-Dialog').getByRole('button', { name: 'Confirm Kernel Restart' }).click();
  await page.locator(LIVE).first().waitFor({ state: 'hidden' });
  await page.locator(`${SAVED}:visible`).first().waitFor();
  await picture(page, 'restarted');
  await kernelIdle(page);
  await page
    .locator(`${SAVED}:visible`)
    .getByRole('button', { name: 'Resume in this notebook' })
    .first()
    .click();
  await reviewing(page, 'c6');
  await picture(page, 'shown-again');
  await click(page, 'Approve c6');
  await click(page, 'Approve c6 nevertheless'); // it is slower than c2, which it replaces
  await reviewing(page, 'c7');
  await until('the approval after the restart is saved', async () => {
    await page.keyboard.press('Control+s');
    await page.waitForTimeout(600);
    const runs = savedBundles(path).map(bundle => bundle[RUN_MIME]);
    return runs.some(run => run.incumbent_id === 'c6' && run.current_id === 'c7');
  });
}

async function stopAndResume(page, path) {
  await click(page, 'Stop');
  await button(page, 'Resume').waitFor();
  await picture(page, 'stopped');
  await click(page, 'Resume');
  await reviewing(page, 'c7');
  await save(page, path, () => true);
}

/** When a cell was run, when it had its number, as the kernel replied, and when its live view was painted: ms. */
async function timesOf(page, text) {
  const times = cells(page)
    .filter({ hasText: text })
    .evaluate(
      (cell, live) =>
        new Promise(resolve => {
          const prompt = cell.querySelector('.jp-InputPrompt');
          const found = {};
          const mark = name => {
            found[name] ??= performance.now();
            if (Object.keys(found).length === 3) {
              resolve(found);
            }
          };
          const watch = { childList: true, characterData: true, subtree: true };
          new MutationObserver(() => mark(/\d/.test(prompt.textContent) ? 'returned' : 'run')).observe(
            prompt,
            watch
          );
          const look = () =>
            cell.querySelector(live)?.checkVisibility()
              ? setTimeout(() => mark('painted')) // after the paint of this frame
              : requestAnimationFrame(look);
          look();
        }),
      LIVE
    );
  await runCell(page, text);
  return times;
}

/** The better of two cells counts: kernel, server and browser share a machine that may have much else to do. */
async function paintedSoon(page) {
  const first = await timesOf(page, '--name first');
  await reviewing(page, 'c1');
  const both = [first, await timesOf(page, '--name second')];
  const after = moment => both.map(each => Math.round(each.painted - each[moment]));
  const [returned, run] = [after('returned'), after('run')];
  console.log(
    `first paint ${returned.join(', ')} ms after the cells returned, ${run.join(', ')} after they were run`
  );
  assert.ok(Math.min(...returned) <= FIRST_PAINT_MS);
}

/** Tab in a cell offers what fits; Enter takes it. */
async function completed(page, text, offered) {
  const content = cells(page).last().locator('.cm-content');
  await content.click();
  await page.keyboard.press('Control+a');
  await page.keyboard.type(text);
  await page.keyboard.press('Tab');
  await page.locator('.jp-Completer-item', { hasText: offered }).first().waitFor();
  await picture(page, 'completer');
  await page.keyboard.press('Enter');
  await until(`${offered} is in the cell`, async () => offered.test(await content.innerText()));
}

/** A run that has ended is saved without its widget, but its kernel goes on answering: what to export. */
async function ended(page) {
  const live = page.locator(LIVE).last();
  await live.getByRole('button', { name: 'Approve c1', exact: true }).click();
  await live.getByText('Done · accepted').first().waitFor();
  await live.locator('summary', { hasText: 'Export c1' }).click();
  await live.locator('[aria-label="Export formats of c1"] button').first().waitFor();
  await picture(page, 'ended');
}

async function otherCells(page, base) {
  await openNotebook(page, base, 'others.ipynb');
  await kernelIdle(page);
  await runCell(page, '%load_ext cutegen_lab');
  await part(paintedSoon, page);
  await part(ended, page);
  await completed(page, '%%cutegen --prov', /--provider/);
  await completed(page, '%cutegen show fi', /first-[0-9a-f]{4}/);
  const drawn = await runCell(page, '%cute_layout');
  await drawn.locator('.jp-OutputArea svg:visible').first().waitFor();
  await accessible(page, 'a layout', '.jp-RenderedHTML:has(svg)');
  await picture(page, 'layout');
}

await withJupyter(
  'live',
  root => {
    writeNotebook(join(root, NAME), ['%load_ext cutegen_lab', START, '%cutegen show']);
    writeNotebook(join(root, 'others.ipynb'), OTHERS);
  },
  async ({ base, root, page }) => {
    const path = join(root, NAME);
    await openNotebook(page, base, NAME);
    await kernelIdle(page);
    await runCell(page, '%load_ext cutegen_lab');
    await runCell(page, '%%cutegen');
    await part(everyAction, page, path);
    await part(exported, page, root);
    await part(withoutKernel, page, base, root, 'c6');
    await part(afterRestart, page, base, path);
    await part(stopAndResume, page, path);
    await part(otherCells, page, base);
    console.log(`every action did what it says; pictures in ${shots}`);
  }
);
