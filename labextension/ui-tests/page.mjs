// Screenshots of the widget bundle on the sample runs, each checked with axe and compared with its baseline:
// `npm run ui:page`, after `npm run build`. `ACCEPT=1 npm run ui:page` writes the baselines.
// `npm run ui:page layouts` takes those whose names begin with "layouts".
// CHROMIUM names the browser where it is not /usr/bin/chromium. Pictures go to ui-tests/shots/.
import { execFileSync } from 'node:child_process';
import { readFileSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { difference } from './baselines.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const bundle = fileURLToPath(new URL('../../cutegen_lab/notebook/static/', import.meta.url));
const flags = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
const shots = `${here}shots`;
mkdirSync(shots, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: flags
});
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const failures = [];
let pictures = 0;

// A candidate's machine code as the kernel answers, cut short.
const CODE = {
  candidate_id: 'c5',
  workload: 'main',
  ptx: [
    { text: '.visible .entry kernel_softmax(', line: 0, stall: null },
    { text: '    .param .u64 kernel_softmax_param_0)', line: 0, stall: null },
    { text: '{', line: 0, stall: null },
    { text: '    ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]; // begin inline asm', line: 13, stall: null },
    { text: '    @%p1 bra $L__BB0_2;', line: 21, stall: null },
    { text: '    shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;', line: 21, stall: null },
    { text: '$L__BB0_2:', line: 0, stall: null },
    { text: '    mul.f32 %f2, %f1, 0f3FB8AA3B;', line: 21, stall: null },
    { text: '    st.global.b32 [%rd2], %r9;', line: 27, stall: null }
  ],
  sass: [
    { text: 'kernel_softmax:', line: 0, stall: null },
    { text: '0000  LDC R1, c[0x0][0x28] ;', line: 0, stall: 1 },
    { text: '0010  LDG.E.128 R4, desc[UR4][R2.64] ;', line: 13, stall: 4 },
    { text: '0020  SHFL.BFLY PT, R7, R6, 0x10, 0x1f ;', line: 21, stall: 5 },
    { text: '.L_x_1:', line: 0, stall: null },
    { text: '0030  @!P0 BRA `(.L_x_1) ;', line: 21, stall: 0 },
    { text: '0040  FMUL R2, R1, 1.4426950216293334961 ;', line: 21, stall: 4 },
    { text: '0050  STG.E desc[UR4][R2.64], R9 ;', line: 27, stall: 1 }
  ],
  sass_note: ''
};

// The kernel's answer to a menu of export formats, one of which was chosen.
const EXPORT = {
  formats: [
    { name: 'kernel', suffix: '.py', help: 'the kernel', needs: 'nvidia-cutlass-dsl' },
    {
      name: 'flashinfer-bench',
      suffix: '.json',
      help: 'the kernel as a solution of flashinfer-bench',
      needs: ''
    },
    { name: 'view', suffix: '.cutegen-run.json', help: 'the run, for JupyterLab', needs: 'JupyterLab' }
  ],
  paths: ['softmax-1a2b-c5.json']
};

const answerOf = name => JSON.parse(readFileSync(`${here}../tests/answers/${name}.json`, 'utf8'));
const plotly = execFileSync(
  process.env.PYTHON ?? fileURLToPath(new URL('../../.venv/bin/python', import.meta.url)),
  ['-c', 'from plotly.offline import get_plotlyjs; print(get_plotlyjs())'],
  { encoding: 'utf8', maxBuffer: 1 << 26 }
);
/** What the kernel answers to each query; of several, the one that the query's text names. */
const ANSWERS = {
  machine_code: CODE,
  plots: answerOf('plots'),
  plot: answerOf('plot'),
  plotly,
  layouts: answerOf('layouts'),
  layout: answerOf('layout_pictures'),
  export: EXPORT
};

function compare(name, picture) {
  pictures++;
  const found = difference(name, picture);
  if (found) {
    failures.push(found);
  }
}

async function show(name, sample, { scheme = 'light', width = 1040, height = 900, act } = {}) {
  if (!name.startsWith(process.argv[2] ?? '')) {
    return;
  }
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  page.on('pageerror', error => failures.push(`${name}: ${error.message}`));
  page.on('console', message => message.type() === 'error' && failures.push(`${name}: ${message.text()}`));
  await page.setContent('<!doctype html><body style="margin:12px"><div id="host"></div></body>');
  await page.addStyleTag({ content: readFileSync(`${bundle}widget.css`, 'utf8') });
  const view = JSON.parse(readFileSync(`${here}../tests/samples/${sample}.json`, 'utf8'));
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
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run('.cg-root', { resultTypes: ['violations'] })
  );
  for (const { impact, id, help, nodes } of violations) {
    if (impact === 'serious' || impact === 'critical') {
      failures.push(`${name}: axe ${id}, ${help}: ${nodes.map(node => node.target.join(' ')).join('; ')}`);
    }
  }
  compare(name, await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true }));
  await page.close();
}

await show('review-light', 'review');
await show('review-dark', 'review', { scheme: 'dark' });
await show('review-narrow', 'review', { width: 420 });
const said = page => page.locator('.cg-said').first().click();
await show('said-light', 'review', { height: 2400, act: said });
await show('said-dark-narrow', 'review', { scheme: 'dark', width: 420, height: 2800, act: said });
await show('running', 'running');
await show('done', 'done');
await show('failed-candidate', 'review', {
  act: page => page.getByRole('treeitem', { name: /^c2 / }).click()
});
await show('reject', 'review', {
  act: page => page.getByRole('button', { name: /Reject with reason/ }).click()
});
await show('edit', 'review', {
  scheme: 'dark',
  act: page => page.getByRole('button', { name: 'Edit…' }).click()
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
}
for (const [name, options] of Object.entries({
  'source-light': { width: 1400 },
  'source-dark': { width: 1400, scheme: 'dark' },
  'source-narrow': { width: 620 }
})) {
  await show(name, 'review', { ...options, act: source });
}
/** Every plot with its table; `files`: and what its buttons save. */
async function plots(page, look, files) {
  await page.getByRole('tab', { name: 'Profile' }).click();
  for (const [name, { title, csv }] of Object.entries(ANSWERS.plot)) {
    await page.getByRole('radio', { name, exact: true }).focus();
    await page.keyboard.press('Space');
    await page.getByRole('img', { name: title }).locator('svg .gtitle').waitFor();
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
for (const [name, options] of Object.entries({
  'layouts-light': { width: 1400 },
  'layouts-dark': { width: 1400, scheme: 'dark' },
  'layouts-narrow': { width: 620 }
})) {
  await show(name, 'review', { ...options, act: layouts });
}
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
await show('changes', 'review', {
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
for (const [name, options] of Object.entries({
  'compare-light': { width: 1200 },
  'compare-dark': { width: 1200, scheme: 'dark' },
  'compare-narrow': { width: 620 }
})) {
  await show(name, 'review', { ...options, act: compared });
}
for (const [name, options] of Object.entries({
  'pinned-light': { width: 1040 },
  'pinned-dark': { width: 1040, scheme: 'dark' },
  'pinned-narrow': { width: 620 }
})) {
  await show(name, 'pinned', {
    ...options,
    act: async page => {
      await page.getByRole('button', { name: 'Pin…' }).click();
      await page.locator('.cg-notes').scrollIntoViewIfNeeded();
      await page.waitForTimeout(300);
    }
  });
}
for (const [name, options] of Object.entries({
  'model-light': {},
  'model-dark': { scheme: 'dark' },
  'model-narrow': { width: 620 }
})) {
  await show(name, 'model', options);
}
await show('scope', 'review', {
  act: page => page.getByRole('combobox', { name: 'Approve for' }).selectOption('floor')
});
await show('keys', 'review', { act: page => page.getByRole('button', { name: 'Keys' }).click() });
await show('unproven', 'unproven', {
  act: page => page.getByRole('button', { name: /Approve without proof/ }).click()
});
await show('interrupted', 'interrupted');
await show('started', 'started');
await show('hostile', 'hostile');
await browser.close();
if (failures.length > 0) {
  console.error(failures.join('\n'));
  process.exit(1);
}
console.log(`${pictures} pictures in ${shots}`);
