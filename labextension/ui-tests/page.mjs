// Screenshots of the widget bundle on the sample runs, each checked with axe and compared with its baseline:
// `npm run ui:page`, after `npm run build`. `ACCEPT=1 npm run ui:page` writes the baselines.
// `npm run ui:page layouts` takes those whose names begin with "layouts".
// CHROMIUM names the browser where it is not /usr/bin/chromium. Pictures go to ui-tests/shots/.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { ANSWERS } from './answers.mjs';
import { difference } from './baselines.mjs';
import { accessible, here, shots } from './jupyter.mjs';

const bundle = fileURLToPath(new URL('../../cutegen_lab/notebook/static/', import.meta.url));
const flags = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: flags
});
const failures = [];
let pictures = 0;

function compare(name, picture) {
  pictures++;
  const found = difference(name, picture);
  if (found) {
    failures.push(found);
  }
}

async function show(name, sample, { scheme = 'light', width = 1040, height = 900, change, act } = {}) {
  if (!name.startsWith(process.argv[2] ?? '')) {
    return;
  }
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  page.on('pageerror', error => failures.push(`${name}: ${error.message}`));
  page.on('console', message => message.type() === 'error' && failures.push(`${name}: ${message.text()}`));
  await page.setContent('<!doctype html><body style="margin:12px"><div id="host"></div></body>');
  await page.addStyleTag({ content: readFileSync(`${bundle}widget.css`, 'utf8') });
  const view = JSON.parse(readFileSync(`${here}../tests/samples/${sample}.json`, 'utf8'));
  change?.(view);
  await page.clock.setFixedTime((view.updated_at + 2.4) * 1000);
  const module = readFileSync(`${bundle}widget.js`, 'utf8');
  await page.evaluate(
    async ([source, state, answers]) => {
      const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
      const { default: widget } = await import(url);
      const heard = [];
      const send = message => {
        const known = answers[message.query];
        const found = known?.[message.text] ?? known;
        const data =
          typeof found === 'object' ? { ...found, candidate_id: message.candidate_id } : (found ?? []);
        if (message.query === 'machine_code' && message.candidate_id !== 'c5') {
          data.ptx = data.ptx.slice(0, 7);
        }
        setTimeout(() =>
          heard.forEach(hear => hear({ request_id: message.request_id, ok: true, error: '', data }))
        );
      };
      const on = (name, hear) => name === 'msg:custom' && heard.push(hear);
      const model = { get: () => state, on, off() {}, send };
      widget.render({ model, el: document.getElementById('host') });
    },
    [module, view, ANSWERS]
  );
  await act?.(page);
  if (await page.evaluate(() => globalThis.pwned !== undefined)) {
    failures.push(`${name}: text from the run was executed`);
  }
  if (await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)) {
    failures.push(`${name}: wider than the page`);
  }
  await accessible(page, name, '.cg-root').catch(error => failures.push(error.message));
  compare(name, await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true }));
  await page.close();
}

const LOOKS = {
  light: {},
  dark: { scheme: 'dark' },
  narrow: { width: 620 }
};
/** A state in each look. `change` alters the run that is shown. */
async function looks(name, sample, options = {}) {
  for (const [look, how] of Object.entries(LOOKS)) {
    await show(`${name}-${look}`, sample, { ...options, ...how });
  }
}
const press =
  (name, exact = false) =>
  page =>
    page.getByRole('button', { name, exact }).click();

await looks('review', 'review');
await show('review-narrowest', 'review', { width: 420 });
const said = page => page.locator('.cg-said').first().click();
await show('said-light', 'review', { height: 2400, act: said });
await show('said-dark-narrow', 'review', { scheme: 'dark', width: 420, height: 2800, act: said });
await looks('running', 'running');
await looks('done', 'done');
await looks('failed-candidate', 'review', {
  act: page => page.getByRole('treeitem', { name: /^c2 / }).click()
});
await looks('reject', 'review', { act: press(/Reject with reason/) });
await looks('edit', 'review', { act: press('Edit…') });
await looks('slower', 'review', {
  change: view => {
    const times = { c1: 30, c5: 33 };
    view.incumbent_id = 'c1';
    for (const point of view.trend) {
      point.time_us = times[point.candidate_id] ?? point.time_us;
    }
  },
  act: press('Approve c5')
});
async function exported(page) {
  await page.locator('.cg-export > summary').click();
  await page.getByRole('button', { name: 'flashinfer-bench' }).click();
  await page.getByText('Wrote softmax').scrollIntoViewIfNeeded();
}
await show('export-light', 'review', { act: exported });
await show('export-dark-narrow', 'review', { scheme: 'dark', width: 620, act: exported });

async function source(page) {
  await page.getByRole('button', { name: 'Show full source' }).click();
  await page.getByRole('button', { name: 'PTX' }).click();
  await page.getByRole('button', { name: 'SASS' }).click();
  await page
    .getByRole('button', { name: /^[Ll]ine 13/ })
    .first()
    .click();
  await page.locator('.cg-source').scrollIntoViewIfNeeded();
  await page.waitForTimeout(300);
  await page.getByText('shfl.sync.bfly').hover();
  const aligned = page.locator('.cg-cm-linked', { hasText: 'SHFL.BFLY' });
  await aligned
    .waitFor({ timeout: 3000 })
    .catch(() => failures.push('source: pointing at a PTX line does not mark its SASS'));
  await page.locator('.cg-code').evaluate(code => code.scrollIntoView({ block: 'end', behavior: 'instant' }));
  await page.waitForTimeout(300);
}
await looks('source', 'review', { width: 1400, act: source });
/** The wheel zooms into a timeline, and a double click shows all again. */
async function zoomed(page, title) {
  const place = page.getByRole('img', { name: title });
  const range = () => place.evaluate(element => element._fullLayout.xaxis.range.map(Number));
  const length = async () => (([from, to]) => to - from)(await range());
  const box = await place.locator('.nsewdrag').first().boundingBox();
  const before = await length();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, -300);
  await page.waitForTimeout(300);
  const near = await length();
  await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForTimeout(600);
  const after = await length();
  if (!(near < 0.95 * before) || Math.abs(after - before) > 0.01 * before) {
    failures.push(`timeline: ${before} wide, ${near} after the wheel, ${after} after a double click`);
  }
}
/** Every plot with its table; `files`: and what its buttons save. */
async function plots(page, look, files) {
  await page.getByRole('tab', { name: 'Profile' }).click();
  for (const [name, { title, csv }] of Object.entries(ANSWERS.plot)) {
    await page.getByRole('radio', { name, exact: true }).focus();
    await page.keyboard.press('Space');
    await page.getByRole('img', { name: title }).locator('svg .gtitle').waitFor();
    if (name === 'timeline') {
      await zoomed(page, title);
    }
    await page.getByText('As a table').click();
    for (const format of files ? ['CSV', 'PNG', 'SVG'] : []) {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: format, exact: true }).click()
      ]);
      if (file.suggestedFilename() !== `r-7f3a91-c5-${name}.${format.toLowerCase()}`) {
        failures.push(`${name}: saved as ${file.suggestedFilename()}`);
      }
      if (format === 'CSV' && readFileSync(await file.path(), 'utf8') !== csv) {
        failures.push(`${name}: the CSV is not what Python wrote`);
      }
    }
    compare(
      `plot-${name}-${look}`,
      await page.locator('.cg-root').screenshot({ path: `${shots}/plot-${name}-${look}.png` })
    );
  }
}
for (const [look, options] of Object.entries({
  light: { width: 1400 },
  dark: { width: 1400, scheme: 'dark' },
  narrow: { width: 620 },
  'dark-narrow': { width: 620, scheme: 'dark' }
})) {
  await show(`profile-${look}`, 'review', {
    ...options,
    height: 1400,
    act: page => plots(page, look, look === 'light')
  });
}
async function layouts(page) {
  await page.getByRole('tab', { name: 'Layouts' }).click();
  await page.getByRole('radio').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.locator('.cg-drawing[aria-label*="TMA box"] svg').waitFor();
  await page.keyboard.press('ArrowUp');
  await page.locator('.cg-drawing[aria-label^="Sw"] svg').waitFor();
  const cell = page.locator('.cg-drawing .o .e').first();
  await cell.scrollIntoViewIfNeeded();
  const box = await cell.locator('.c').first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const lit = await cell.evaluate(
    element =>
      [...element.querySelectorAll('.c')].filter(rect => getComputedStyle(rect).strokeWidth === '3px').length
  );
  if (lit < 2) {
    failures.push(`layouts: ${lit} cells of an element light up, in the picture and in memory`);
  }
}
await looks('layouts', 'review', { width: 1400, act: layouts });
for (const scheme of ['light', 'dark']) {
  await show(`layouts-conflicts-${scheme}`, 'review', {
    width: 1400,
    scheme,
    act: async page => {
      await page.getByRole('tab', { name: 'Layouts' }).click();
      await page.getByRole('radio', { name: /bank conflicts/ }).check();
      await page.locator('.cg-drawing[aria-label^="load of 4 bytes"] svg').waitFor();
    }
  });
}
await looks('changes', 'review', {
  width: 1200,
  act: async page => {
    await page.locator('.cg-source').scrollIntoViewIfNeeded();
    await page.waitForTimeout(300);
  }
});
async function compared(page) {
  await page.getByRole('treeitem', { name: /^c4 / }).click({ modifiers: ['Control'] });
  await page.getByRole('button', { name: 'Compare PTX' }).click();
  await page.waitForTimeout(300);
}
await looks('compare', 'review', { width: 1200, act: compared });
const noted = name => async page => {
  await press(name)(page);
  await page.locator('.cg-notes').scrollIntoViewIfNeeded();
  await page.waitForTimeout(300);
};
await looks('pinned', 'pinned', { act: noted('Pin…') });
await looks('comment', 'pinned', { act: noted('Comment…') });
await looks('model', 'model');
await looks('measured', 'measured');
await looks('scope', 'review', {
  act: page => page.getByRole('combobox', { name: 'Approve for' }).selectOption('floor')
});
await looks('keys', 'review', { act: press('Keys') });
await looks('unproven', 'unproven', { act: press(/Approve without proof/) });
await looks('interrupted', 'interrupted');
await looks('started', 'started');
await looks('hostile', 'hostile');
await browser.close();
if (failures.length > 0) {
  console.error(failures.join('\n'));
  process.exit(1);
}
console.log(`${pictures} pictures in ${shots}`);
