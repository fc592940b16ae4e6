// How long the widget takes with a run of 500 candidates, in Chromium: `npm run ui:speed`, after `npm run build`.
// Each interaction has its time until the next paint, and the time that the page's main thread computed for it, which
// other processes of a busy machine do not lengthen: that one is held to the limit. CHROMIUM is as for ui:page.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { ANSWERS } from './answers.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const bundle = fileURLToPath(new URL('../../cutegen_lab/notebook/static/', import.meta.url));
const python = process.env.PYTHON ?? fileURLToPath(new URL('../../.venv/bin/python', import.meta.url));
const COUNT = 500;
const ROUNDS = 5;
/** A kernel's text as long as the longest that templates write, and machine code of that size. */
const SOURCE = readFileSync(`${here}../../tests/golden/gemm.py`, 'utf8');
const LINES = SOURCE.split('\n').length;
const repeated = lines =>
  Array.from({ length: 2 * LINES }, (_, at) => ({ ...lines[at % lines.length], line: at >> 1 }));
const { ptx, sass } = ANSWERS.machine_code;
const LONG = {
  ...ANSWERS,
  machine_code: { ...ANSWERS.machine_code, ptx: repeated(ptx), sass: repeated(sass) }
};
/** In ms, but KB of the bundle. */
const LIMITS = {
  interaction: 100,
  paint: 300,
  load: 200,
  plotly: 2000,
  bundle: 400,
  told: 300
};
const over = [];

/** A run of `count` candidates: those of the sample again and again, each from one that came before it, with a text of
 * its own. */
function grown(count) {
  const view = JSON.parse(readFileSync(`${here}../tests/samples/review.json`, 'utf8'));
  const samples = view.candidates;
  const place = new Map(samples.map(({ id }, at) => [id, at]));
  const name = at => `c${at + 1}`;
  view.candidates = Array.from({ length: count }, (_, at) => {
    const sample = samples[at % samples.length];
    const round = at - (at % samples.length);
    const parent = sample.parent_id === null ? null : place.get(sample.parent_id);
    const from = parent !== null ? name(round + parent) : round === 0 ? null : name(Math.floor(at / 3));
    return { ...sample, id: name(at), parent_id: from, source: `${SOURCE}# ${name(at)}\n` };
  });
  view.trend = view.candidates.map(({ id }, at) => ({
    ...view.trend[at % view.trend.length],
    candidate_id: id
  }));
  view.current_id = name(count - 1);
  view.approvable = [view.current_id];
  view.settings.max_steps = count;
  return view;
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking']
});
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.on('pageerror', error => over.push(error.message));
await page.setContent('<!doctype html><body></body>');
await page.addStyleTag({ content: readFileSync(`${bundle}widget.css`, 'utf8') });
const metrics = await page.context().newCDPSession(page);
await metrics.send('Performance.enable', { timeDomain: 'threadTicks' });
/** Milliseconds that the page's main thread has computed so far. */
const computed = async () => {
  const { metrics: found } = await metrics.send('Performance.getMetrics');
  return 1000 * found.find(({ name }) => name === 'TaskDuration').value;
};

/** Milliseconds until the paint after `act`, which runs in the page, and those that the main thread computed. */
async function timed(act, argument) {
  const before = await computed();
  const painted = await page.evaluate(
    async ([source, given]) => {
      const run = new Function('given', `return (${source})(given)`);
      const start = performance.now();
      await run(given);
      await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - start;
    },
    [act.toString(), argument]
  );
  return { painted, computed: (await computed()) - before };
}

const rows = [];
function report(what, found, limit) {
  const middle = key => found.map(each => each[key]).sort((a, b) => a - b)[Math.floor(found.length / 2)];
  const worst = Math.max(...found.map(each => each.computed));
  rows.push({
    what,
    'to the paint, ms': Math.round(middle('painted')),
    'main thread, ms': Math.round(middle('computed')),
    'its worst, ms': Math.round(worst),
    'limit, ms': limit
  });
  if (middle('computed') > limit) {
    over.push(`${what}: ${Math.round(middle('computed'))} ms, over ${limit}`);
  }
}

async function open(view) {
  await page.evaluate(given => {
    globalThis.state = given;
    globalThis.heard = {};
    globalThis.model = {
      get: () => globalThis.state,
      on: (name, hear) => (globalThis.heard[name] = hear),
      off() {},
      send: ({ request_id, query, text, candidate_id }) => {
        const known = globalThis.answers[query];
        const found = known?.[text] ?? known ?? null;
        const data =
          found !== null && typeof found === 'object' && !Array.isArray(found)
            ? { ...found, candidate_id }
            : found;
        globalThis.heard['msg:custom']?.({ request_id, ok: true, error: '', data });
      }
    };
  }, view);
  return timed(
    async source => {
      const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
      const { default: widget } = await import(url);
      const el = document.createElement('div');
      document.body.replaceChildren(el);
      widget.render({ model: globalThis.model, el });
    },
    readFileSync(`${bundle}widget.js`, 'utf8')
  );
}

await page.evaluate(given => {
  globalThis.answers = given;
  globalThis.drawn = async title => {
    const figure = `[role=img][aria-label^="${title}"] .gtitle`;
    while (document.querySelector(figure) === null) {
      await new Promise(done => setTimeout(done, 5));
    }
  };
}, LONG);
const view = grown(COUNT);
const small = JSON.parse(readFileSync(`${here}../tests/samples/started.json`, 'utf8'));
report('first paint, a run that starts', [await open(small)], LIMITS.paint);
report(`first paint, ${COUNT} candidates`, [await open(view)], LIMITS.paint);

const clicks = (selector, at = 0) => [
  ([chosen, number]) => {
    const found = document.querySelectorAll(chosen);
    if (found[number] === undefined) {
      throw new Error(`${chosen}: ${found.length}, not ${number + 1}`);
    }
    found[number].click();
  },
  [selector, at]
];
/** Clicks the first button that is called that. */
const button = name => [
  wanted => {
    const found = [...document.querySelectorAll('button, summary')].find(
      each => each.textContent.trim() === wanted
    );
    if (found === undefined) {
      throw new Error(`no button ${wanted}`);
    }
    found.click();
  },
  name
];
/** Presses a key where the selected candidate is. */
const key = name => [
  pressed =>
    document
      .querySelector('[role=treeitem][aria-selected=true]')
      .dispatchEvent(new KeyboardEvent('keydown', { key: pressed, bubbles: true, cancelable: true })),
  name
];
/** Chooses the next option of a list. */
const option = selector => [
  wanted => {
    const list = document.querySelector(wanted);
    list.selectedIndex = (list.selectedIndex + 1) % list.options.length;
    list.dispatchEvent(new Event('change', { bubbles: true }));
  },
  selector
];
/** Moves or clicks the mouse on a line of the pane of that number. */
const pane = (number, type, line) => [
  ([at, event, row]) => {
    const found = document.querySelectorAll('.cg-code .cm-content')[at].querySelectorAll('.cm-line')[row];
    const { left, top, height } = found.getBoundingClientRect();
    found.dispatchEvent(
      new MouseEvent(event, { clientX: left + 30, clientY: top + height / 2, bubbles: true, view: window })
    );
  },
  [number, type, line]
];
const INTERACTIONS = {
  'select a candidate': round => clicks('[role=treeitem]', 40 + 90 * round),
  'next candidate (J)': () => key('j'),
  'previous candidate (K)': () => key('k'),
  'lineage: arrow': () => key('ArrowDown'),
  'lineage: End': () => key('End'),
  'lineage: Home': () => key('Home'),
  'branch (B)': () => key('b'),
  'branch: cancel': () => key('Escape'),
  'keys shown': () => button('Keys'),
  'keys hidden': () => button('Keys'),
  'tab: Compare': () => clicks('[data-tab=compare]'),
  'compare: chosen from the list': () => option('.cg-compare-head .cg-select'),
  'compare: PTX': () => button('Compare PTX'),
  'compare with another': round => [
    at => {
      const item = document.querySelectorAll('[role=treeitem]')[at];
      item.dispatchEvent(new MouseEvent('click', { ctrlKey: true, bubbles: true, cancelable: true }));
    },
    30 + 70 * round
  ],
  'tab: Profile, its first plot': () => [
    async () => {
      document.querySelector('[data-tab=profile]').click();
      await globalThis.drawn('Roofline');
    },
    null
  ],
  ...Object.fromEntries(
    Object.entries(ANSWERS.plot)
      .reverse()
      .map(([name, { title }]) => [
        `plot: ${name}`,
        () => [
          async ([chosen, wanted]) => {
            document.querySelector(`input[value=${chosen}]`).click();
            await globalThis.drawn(wanted);
          },
          [name, title]
        ]
      ])
  ),
  "a plot's table": () => clicks('.cg-tables > summary'),
  'tab: Layouts': () => clicks('[data-tab=layouts]'),
  'another layout': () => clicks('.cg-layouts input', 1),
  'tab: Review': () => clicks('[data-tab=review]'),
  'select the one under review': () => clicks(`[role=treeitem][data-candidate=c${COUNT}]`),
  'the whole source': () => button('Show full source'),
  'another column of the heat': () => option('.cg-source .cg-select'),
  'PTX beside it': () => button('PTX'),
  'SASS beside it': () => button('SASS'),
  'pointing at a source line': round => pane(0, 'mousemove', 3 + round),
  'pointing at a PTX line': round => pane(1, 'mousemove', 3 + round),
  'clicking a SASS line': round => pane(2, 'click', 3 + round),
  'a line of the evidence': () => clicks('.cg-evidence .cg-link'),
  'from a line back to the evidence': () => clicks('.cg-said'),
  'SASS closed': () => button('SASS'),
  'PTX closed': () => button('PTX'),
  'only the changes': () => button('Show changes'),
  'comment: the form': () => button('Comment…'),
  'pin: the form': () => button('Pin…'),
  'pin: closed': () => button('Pin…'),
  'export: the menu': () => clicks('.cg-export > summary'),
  'export: closed': () => clicks('.cg-export > summary'),
  'edit: the editor': () => key('e'),
  'edit: typing': () => [
    () => {
      const editors = document.querySelectorAll('.cg-editor .cm-content');
      editors[editors.length - 1].focus();
      document.execCommand('insertText', false, 'x = 1');
    },
    null
  ],
  'edit: closed': () => button('Close'),
  'reject: its form': () => key('r'),
  'reject: closed': () => button('Cancel'),
  'scope of an approval': () => option('.cg-actions select'),
  'approve: the answer is taken': () => clicks('button[data-verb=approve]'),
  'approve: the next state of the run': round => [
    at => {
      globalThis.state = globalThis.next[at];
      globalThis.heard['change:view']();
    },
    round
  ]
};
await page.evaluate(count => {
  globalThis.next = Array.from({ length: count }, (_, at) => {
    const view = structuredClone(globalThis.state); // a kernel's state is new in all its parts
    view.candidates[view.candidates.length - 1 - at].title += ' again';
    return view;
  });
}, ROUNDS);
const FIRST = 'tab: Profile, its first plot';
report('plotly is loaded, and its first plot drawn', [await timed(...INTERACTIONS[FIRST]())], LIMITS.plotly);
const found = Object.fromEntries(Object.keys(INTERACTIONS).map(what => [what, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [what, make] of Object.entries(INTERACTIONS)) {
    found[what].push(await timed(...make(round)));
  }
}
const inSight = await page.evaluate(() => {
  const box = document.querySelector('.cg-lineage-box').getBoundingClientRect();
  const row = document.querySelector('[role=treeitem][aria-selected=true]').getBoundingClientRect();
  return row.top >= box.top - 1 && row.bottom <= box.bottom + 1;
});
if (!inSight) {
  over.push(`the candidate under review, c${COUNT}, is not in sight in the lineage`);
}
for (const [what, each] of Object.entries(found)) {
  report(what, each, LIMITS.interaction);
}
await browser.close();

// Of the kernel: its own processor time, after IPython started; and then, while PyTorch is imported in the background,
// the time until a syntax error is told.
const printed = execFileSync(
  python,
  [
    '-c',
    `import json, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = time.thread_time()
shell.run_line_magic("load_ext", "cutegen_lab")
load = time.thread_time() - before
before = time.perf_counter()
shell.run_cell("%%cutegen\\ndef reference(x:\\n")
print(json.dumps([load, time.perf_counter() - before]))`
  ],
  { cwd: fileURLToPath(new URL('../..', import.meta.url)), encoding: 'utf8' }
)
  .trim()
  .split('\n');
if (!printed.some(line => line.includes('syntax error at line 2'))) {
  throw new Error(printed.join('\n'));
}
const [load, told] = JSON.parse(printed.at(-1)).map(seconds => Math.round(1000 * seconds));
const size = Math.round(gzipSync(readFileSync(`${bundle}widget.js`)).length / 1000);
console.table(rows);
console.log(`%load_ext: ${load} ms of processor time (limit ${LIMITS.load})`);
console.log(`a syntax error is told in ${told} ms (limit ${LIMITS.told})`);
console.log(`bundle: ${size} KB gzipped (limit ${LIMITS.bundle})`);
console.log(`on ${cpus().length} cores, ${cpus()[0].model.trim()}`);
if (load > LIMITS.load) {
  over.push(`%load_ext: ${load} ms`);
}
if (told > LIMITS.told) {
  over.push(`a syntax error: ${told} ms`);
}
if (size > LIMITS.bundle) {
  over.push(`bundle: ${size} KB`);
}
if (over.length > 0) {
  console.error(over.join('\n'));
  process.exit(1);
}
