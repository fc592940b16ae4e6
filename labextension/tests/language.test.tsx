import { openSearchPanel } from '@codemirror/search';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { mount, unmount } from '../src/run/mount';
import { leaveWords } from '../src/run/words';
import { disguised, kernelFor, textsShown, untranslated } from './disguise';
import { host } from './host';
import { givePlotly } from './plotly';
import { button, sample, text, type SampleName } from './samples';
import { pseudo } from './texts';

const page = document.documentElement;
const SAMPLES: SampleName[] = [
  ...([
    'review',
    'running',
    'interrupted',
    'done',
    'unproven',
    'started',
    'hostile',
    'pinned',
    'model'
  ] as const)
];

/** Single words of the data, which may be shown. */
let shown: Set<string>;
/** All that was looked at. */
let seen: Set<string>;

beforeEach(() => {
  shown = new Set();
  seen = new Set();
  leaveWords('de', pseudo());
  givePlotly();
});

afterEach(() => {
  delete page.dataset.cutegenWords;
  vi.useRealTimers();
});

async function settled(change: () => unknown): Promise<void> {
  await act(async () => {
    change();
    for (let turn = 0; turn < 9; turn++) {
      await Promise.resolve();
    }
  });
}

type Given = Parameters<typeof mount> extends [unknown, ...infer Rest] ? Rest : never;
type How = Given extends [unknown, ...infer Rest] ? Rest : never;

const show = (...given: Given) => settled(() => mount(host, ...given));

/** Fails where something on the page is in English. */
function look(): void {
  expect(untranslated(host, shown)).toEqual([]);
  textsShown(host).forEach(each => seen.add(each));
}

function found(selector: string): HTMLElement {
  const element = host.querySelector<HTMLElement>(selector);
  if (element === null) {
    throw new Error(`there is no ${selector}`);
  }
  return element;
}

async function click(selector: string): Promise<void> {
  await settled(() => found(selector).click());
  look();
}

async function choose(selector: string, value: string): Promise<void> {
  await settled(() => {
    const select = found(selector) as HTMLSelectElement;
    select.value = value;
    select.dispatchEvent(new Event('change', { bubbles: true }));
  });
  look();
}

function expectSeen(...parts: string[]): void {
  const all = [...seen].join('\n');
  expect(parts.filter(part => !all.includes(part))).toEqual([]);
}

/** The view of a candidate that has everything, and is slower than the current one. */
function full() {
  const view = sample('review');
  view.trend.forEach(point => {
    point.time_us = point.candidate_id === 'c5' ? 33 : 30;
    point.basis = 'measured';
  });
  const last = view.candidates.at(-1);
  if (last === undefined) {
    throw new Error('the sample has no candidate');
  }
  const { source, diff, evidence, diagnostics, heat } = last;
  last.specialised = { source, diff, evidence, diagnostics, heat, same_lines: { 1: 2 } };
  last.config_changes = [{ name: 'threads', old: '128', new: '' }];
  last.baselines = { eager: 50 };
  last.heat = [{ label: 'Sectors', unit: 'sectors of 32 bytes', total: 200, lines: { 2: 150 } }];
  last.notes = (['open', 'gone', 'kept', 'broken'] as const).map((state, at) => ({
    ...{
      candidate_id: 'c5',
      id: `n${at}`,
      pin: at > 1,
      what: 'lines 1 to 2',
      quote: 'x',
      text: 'why is it so',
      state
    },
    ...{ first: at ? 1 : 0, last: at ? 2 : 0 }
  }));
  view.cost = { prompt: 5, completion: 6, usd: null, max_tokens: 90, max_usd: null, streamed: 4 };
  return disguised({ ...view, incumbent_id: 'c1', verbs: [...view.verbs, 'lift' as const] }, shown);
}

/** For a machine with other work. */
const LONG = { timeout: 30_000 };

describe('the run view in another language', () => {
  it('is searched for words that are in no marks', () => {
    host.innerHTML =
      '<p title="Not this">⟦Approve ⟧c1⟦ now⟧, and 3.1e-5 µs</p><input placeholder="nor this"><kbd>a</kbd>';
    const found = untranslated(host, new Set(['c1'])).map(each => each.split(' in: ')[0]);
    expect(found).toEqual(['Not', 'this', 'and', 'nor', 'this']);
    const view = disguised(sample('review'), shown);
    expect(view.candidates[0]?.title).not.toMatch(/[A-Za-z]/);
    expect(shown).toContain('c5');
    expect(['is', 'of', 'the', 'to', 'than', 'Approve'].filter(word => shown.has(word))).toEqual([]);
    host.replaceChildren();
  });

  it.each(SAMPLES)('has no word of %s in English, with a kernel and without', LONG, async name => {
    const view = disguised(sample(name), shown);
    const away = { reason: 'жж', label: 'жж', go: () => undefined };
    const ways: How[] = [[kernelFor(shown)], [null], [null, true], [null, false, away]];
    for (const given of ways) {
      await show(view, ...given);
      look();
    }
  });

  it('has none in what is asked and answered', LONG, async () => {
    await show(full(), kernelFor(shown));
    look();
    await click('.cg-header button'); // the keys
    for (const verb of ['approve', 'reject', 'edit']) {
      await click(`[data-verb=${verb}]`);
      expect(host.querySelector('.cg-prompt')).not.toBeNull();
    }
    await settled(() => openSearchPanel(text(host, '⟦Text of ⟧c5')));
    look();
    await choose('.cg-scope select', 'steps');
    await choose('.cg-scope select', 'floor');
    await settled(() => {
      (found('.cg-export') as HTMLDetailsElement).open = true;
      found('.cg-export').dispatchEvent(new Event('toggle'));
    });
    look();
    await click('.cg-export button');
    await click('[data-candidate=c1]');
    await show(disguised(sample('unproven'), shown), kernelFor(shown));
    await click('[data-verb=approve_unproven]');
    expectSeen('⟦ slower than ⟧', '⟦replace all⟧', '⟦Wrote ⟧', '⟦Review ⟧', '⟦ has no complete proof.⟧');
  });

  it('has none beside the source', LONG, async () => {
    await show(full(), kernelFor(shown));
    await click('[data-verb=comment]');
    await click('[data-verb=pin]');
    await settled(() => text(host, '⟦Source of ⟧c5').dispatch({ selection: { anchor: 0 } }));
    look();
    await choose('.cg-source header select', '');
    await click('[aria-label="⟦Beside the source⟧"] button:nth-child(2)'); // SASS, of which there is none
    await click('.cg-source header > button:last-child'); // the whole text
    await click('[aria-label="⟦Which text⟧"] button:nth-child(2)');
    await settled(() => openSearchPanel(text(host, '⟦Source of ⟧c5')));
    look();
    expectSeen(
      '⟦No SASS: ⟧',
      '⟦these lines are gone⟧',
      ' unchanged lines⟧',
      '⟦match case⟧',
      '⟦Show changes⟧'
    );
  });

  it('has none in the other tabs', LONG, async () => {
    const view = full();
    const silent = { ...kernelFor(shown), look: () => new Promise(() => undefined) };
    for (const kernel of [null, silent, kernelFor(shown)]) {
      await show({ ...view }, kernel);
      for (const tab of ['compare', 'profile', 'layouts']) {
        await click(`[data-tab=${tab}]`);
      }
    }
    await vi.waitFor(() => expect(host.querySelector('.cg-drawing svg')).not.toBeNull());
    look();
    await click('[data-tab=profile]');
    await click('[data-tab=compare]');
    await click('[aria-label="⟦Changed PTX⟧"] button');
    expectSeen('⟦Loading…⟧', '⟦Plots of ⟧', '⟦lines ⟧', '⟦As a table⟧', '⟦: the same.⟧', '⟦Plots are shown');
  });

  it('has none where the run cannot be shown, or the kernel is silent', LONG, async () => {
    shown = new Set(['trend', 'sol']);
    for (const data of [
      [],
      {},
      { schema_version: 2 },
      { ...sample('done'), trend: 1 },
      { ...sample('done'), sol: 1 }
    ]) {
      await show(data, null);
      look();
      expect(host.textContent).toContain('⟦');
    }
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await show(disguised(sample('review'), shown), {
      ...kernelFor(shown),
      ask: () => new Promise(() => undefined)
    });
    await settled(() => host.querySelector<HTMLElement>('[data-verb=retry]')?.click());
    look();
    await act(() => void vi.advanceTimersByTime(5000));
    expect(host.querySelector('[role=alert]')?.textContent).toContain('⟦No answer');
    look();
  });

  it('is drawn again when the words come late, for as long as it is there', async () => {
    delete page.dataset.cutegenWords;
    await show(sample('review'), kernelFor(shown));
    expect(button(host, 'Approve c5').disabled).toBe(false);
    await settled(() => leaveWords('de', { 'Approve %1': ['%1 annehmen'] }));
    expect(button(host, 'c5 annehmen').disabled).toBe(false);
    const gone = vi.spyOn(page, 'removeEventListener');
    await act(() => unmount(host));
    expect(gone).toHaveBeenCalledWith('cutegen-words', expect.any(Function));
    await show({}, null);
    await settled(() => leaveWords('de', { 'Waiting for the run…': ['Gleich…'] }));
    expect(host.textContent).toBe('Gleich…');
  });
});
