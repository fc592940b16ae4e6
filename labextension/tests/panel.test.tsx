import { forEachDiagnostic, forceLinting } from '@codemirror/lint';
import { getOriginalDoc } from '@codemirror/merge';
import { act } from 'preact/test-utils';
import { describe, expect, it, vi } from 'vitest';
import { mount, unmount } from '../src/run/mount';
import type { Ask, IAnswer, Look } from '../src/run/verbs';
import type { RunView } from '../src/schema';
import { host } from './host';
import { button, replace, sample, text, type, verbs, type SampleName } from './samples';

const NOTHING: Look = () => Promise.reject(new Error('nothing is known'));

async function show(
  view: RunView,
  ask: Ask | null = () => Promise.resolve(),
  look: Look = NOTHING
): Promise<void> {
  await act(() => mount(host, view, ask && { ask, look }));
}

async function click(name: string | RegExp): Promise<void> {
  await act(async () => {
    button(host, name).click();
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve(); // Until the kernel's answer has been taken in.
    }
  });
}

describe('what is shown', () => {
  it('puts status, steps with words and seconds, verdicts and evidence on the page', async () => {
    await show(sample('review'));
    expect(host.querySelector('[role=status]')?.textContent).toBe('Your review · candidate c5');
    const steps = [...host.querySelectorAll('.cg-step')].map(step => step.textContent);
    expect(steps[1]).toMatch(/compile\s*done · 0\.42 s/);
    expect(steps[5]).toMatch(/review\s*awaits you/);
    expect(host.querySelectorAll('.cg-candidate')).toHaveLength(5);
    expect(host.textContent).toContain('Error vs fp64, norm');
  });

  it('awaits the analyst where a review has begun, and no clock ticks there', async () => {
    await show(sample('pinned'));
    expect([...host.querySelectorAll('.cg-step')].at(-1)?.textContent).toMatch(/review\s*awaits you$/);
  });

  it('labels a predicted time as predicted, and a bound as a bound, beside the number', async () => {
    await show(sample('review'));
    const basis = new Map(
      [...host.querySelectorAll('.cg-evidence tr')].map(row => [
        row.querySelector('th')?.textContent,
        row.querySelector('.cg-basis')?.textContent
      ])
    );
    expect(basis.get('Time')).toBe('predicted');
    expect(basis.get('Speed of light')).toBe('bound');
    expect(basis.get('Verdict')).toBeUndefined();
  });

  it('shows the text for one config, with what points into it, and the one with parameters on request', async () => {
    const view = sample('review');
    const last = view.candidates.at(-1);
    if (last === undefined) {
      throw new Error('the sample has no candidate');
    }
    const line = { kind: 'added', text: 'only = 1', old: null, new: 1 } as const;
    const row = {
      key: 'hot_line_1',
      label: 'Line 1',
      value: '9%',
      detail: '',
      tone: 'neutral',
      basis: ''
    } as const;
    last.specialised = {
      source: 'only = 1\n',
      diff: [line],
      evidence: [row],
      diagnostics: [],
      heat: [],
      same_lines: {}
    };
    last.config_changes = [{ name: 'threads', old: '128', new: '' }];
    await show(view);
    expect(host.querySelector('.cg-code')?.textContent).toContain('only = 1');
    expect(host.querySelector('.cg-evidence')?.textContent).toContain('Line 1');
    expect(host.querySelector('.cg-source .cg-config')?.textContent).toBe('threads: 128 → none');
    expect(button(host, 'Specialised').getAttribute('aria-pressed')).toBe('true');
    await click('Tunable');
    expect(host.querySelector('.cg-code')?.textContent).not.toContain('only = 1');
    expect(host.querySelector('.cg-evidence')?.textContent).toContain('Error vs fp64, norm');
    last.specialised = null;
    await show({ ...view });
    expect(host.querySelector('[aria-label="Which text"]')).toBeNull();
  });

  it('shows a failed candidate with its diagnostic, line, excerpt and suggestion', async () => {
    await show(sample('review'));
    await click(/c2 vector loads/);
    const diagnostics = host.querySelector('.cg-diagnostics')?.textContent ?? '';
    expect(diagnostics).toContain('UNSUP_TYPE');
    expect(diagnostics).toContain('line 24');
    expect(diagnostics).toContain('convert first');
  });

  it('marks what changed since the parent, folds what did not, and shows the full source', async () => {
    const view = sample('review');
    const source = view.candidates.at(-1)?.source ?? '';
    await show(view);
    const shown = text(host, 'Source of c5');
    expect(shown.state.doc.toString()).toBe(source);
    const parent = view.candidates.find(each => each.id === view.candidates.at(-1)?.parent_id);
    expect(getOriginalDoc(shown.state).toString()).toBe(parent?.source);
    expect(host.querySelectorAll('.cm-changedLine, .cm-inlineChangedLine').length).toBeGreaterThan(0);
    expect(host.querySelectorAll('.cm-collapsedLines').length).toBeGreaterThan(0);
    await click('Show full source');
    expect(text(host, 'Source of c5').state.doc.toString()).toBe(source);
    expect(host.querySelector('.cm-changedLine, .cm-collapsedLines')).toBeNull();
  });

  it("takes PyTorch's error from a check that passed", async () => {
    const view = sample('review');
    const last = view.trend.at(-1);
    const failed = { ...last, candidate_id: 'c6', verdict: 'wrong_result', torch_error: 1.5e-56 };
    await show({ ...view, trend: [...view.trend, failed] as RunView['trend'] });
    expect(host.querySelector('svg[role=img]')?.getAttribute('aria-label')).not.toContain('1.5e-56');
  });

  it('draws no point of a candidate that is still at work, and a cross for one that failed', async () => {
    await show(sample('running'));
    const marks = [...host.querySelectorAll('.cg-plot')].map(plot => [
      plot.querySelectorAll('.cg-dot').length,
      plot.querySelectorAll('.cg-cross').length
    ]);
    expect(marks).toEqual([
      [3, 2],
      [3, 2]
    ]);
  });

  it('has no steps of a next candidate once the run is done', async () => {
    const view = sample('started');
    await show(view);
    expect(host.textContent).toContain('Next candidate');
    await show({ ...view, status: 'done' });
    expect(host.textContent).not.toContain('Next candidate');
    const edited = view.timeline.map(step =>
      step.step === 'generate' ? { ...step, status: 'skipped' as const, detail: '' } : step
    );
    await show({ ...view, timeline: edited });
    expect(host.textContent).not.toContain('Next candidate');
  });

  it('has steps and actions above what scrolls', async () => {
    await show(sample('review'));
    const order = [...(host.querySelector('.cg-root')?.children ?? [])].map(each => each.className);
    expect(order.indexOf('cg-attempt')).toBeLessThan(order.indexOf('cg-body'));
    expect(order.indexOf('cg-actions')).toBeLessThan(order.indexOf('cg-body'));
    expect(order.at(-1)).toBe('cg-body');
  });

  it('tells the plots in words, with PyTorch and the bound as references', async () => {
    await show(sample('review'));
    const told = [...host.querySelectorAll('svg[role=img]')].map(svg => svg.getAttribute('aria-label'));
    expect(told[0]).toMatch(/Error vs fp64\. PyTorch .*c1: 0\.00171; c2: none; c3: 0\.024/);
    expect(told[1]).toMatch(/Time, predicted\. bound .*c5: 38\.1 µs/);
  });

  it('renders a 500-line source whole', async () => {
    const view = sample('unproven');
    const first = view.candidates[0];
    if (first) {
      first.source = Array.from({ length: 500 }, (_, i) => `line_${i} = ${i}`).join('\n');
    }
    await show(view);
    expect(text(host, `Source of ${first?.id}`).state.doc.lines).toBe(500);
  });

  it('runs a clock for a running step, never behind the kernel, and stops it with the view', async () => {
    const view = sample('started');
    const step = view.timeline[0];
    vi.useFakeTimers({
      now: ((step?.started_at ?? 0) + 4) * 1000,
      toFake: ['Date', 'setInterval', 'clearInterval']
    });
    await show(view);
    const running = () => host.querySelector('.cg-step-running .cg-step-state')?.textContent;
    expect(running()).toBe('running · 4.0 s');
    await act(() => void vi.advanceTimersByTime(8000));
    expect(running()).toBe('running · 12 s');
    await act(() => unmount(host));
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });
});

describe('hostile text', () => {
  it('is shown as text everywhere and makes no element', async () => {
    await show(sample('hostile'));
    expect(host.querySelector('img:not(.cm-widgetBuffer), script, b > b')).toBeNull(); // CodeMirror's own
    expect((globalThis as Record<string, unknown>).pwned).toBeUndefined();
    expect(host.querySelector('h2')?.textContent).toBe(sample('hostile').problem.name);
    expect(host.querySelector('.cg-diagnostic pre')?.innerHTML).toContain('&lt;img');
  });
});

describe('verbs', () => {
  const cases: [SampleName, string[]][] = [
    ['review', ['approve', 'branch', 'comment', 'edit', 'pin', 'reject', 'retry', 'stop']],
    ['unproven', ['approve_unproven', 'comment', 'edit', 'pin', 'reject', 'retry', 'stop']],
    ['running', ['comment', 'pin', 'stop']],
    ['started', ['stop']],
    ['interrupted', ['resume']]
  ];
  it.each(cases)('%s offers exactly what the view allows', async (name, expected) => {
    await show(sample(name));
    expect(verbs(host)).toEqual(expected);
  });

  it('no kernel: same rendering, no action, and a note that says so', async () => {
    await show(sample('review'), null);
    expect(verbs(host)).toEqual([]);
    expect(host.querySelectorAll('.cg-candidate')).toHaveLength(5);
    expect(host.textContent).toContain('A saved run, as it stood');
  });

  it('approves the candidate under review', async () => {
    const sent: IAnswer[] = [];
    await show(sample('review'), answer => (sent.push(answer), Promise.resolve()));
    await click('Approve c5');
    expect(sent).toEqual([{ verb: 'approve', candidate_id: 'c5' }]);
  });

  it('does not approve while another candidate is looked at; branches from that one', async () => {
    const sent: IAnswer[] = [];
    await show(sample('review'), answer => (sent.push(answer), Promise.resolve()));
    await click(/c1 row softmax/);
    expect(verbs(host)).toEqual(['branch', 'comment', 'pin', 'stop']);
    await click('Branch from c1');
    expect(sent).toEqual([{ verb: 'branch', candidate_id: 'c5', target_id: 'c1' }]);
    expect(verbs(host)).toContain('approve'); // Whoever has answered follows the run again.
    await click(/c1 row softmax/);
    await click('Review c5');
    expect(verbs(host)).toContain('approve');
  });

  it('approves another candidate that passed, and asks once more where it is slower', async () => {
    const sent: IAnswer[] = [];
    const view = sample('review');
    await show(view, answer => (sent.push(answer), Promise.resolve()));
    await click(/c4 /);
    expect(verbs(host)).toContain('approve');
    expect(verbs(host)).not.toContain('reject');
    await click('Approve c4');
    expect(sent).toEqual([{ verb: 'approve', candidate_id: 'c4' }]);
    const trend = view.trend.map(each => (each.candidate_id === 'c4' ? { ...each, time_us: 99 } : each));
    await show({ ...view, trend }, answer => (sent.push(answer), Promise.resolve()));
    await click(/c4 /);
    await click('Approve c4');
    expect(sent).toHaveLength(1);
    await click('Approve c4 nevertheless');
    expect(sent).toHaveLength(2);
  });

  it('has a key for the approval of the candidate under review only', async () => {
    const sent: IAnswer[] = [];
    await show(sample('review'), answer => (sent.push(answer), Promise.resolve()));
    const press = () =>
      act(() => {
        const event = new KeyboardEvent('keydown', { key: 'a', bubbles: true });
        host.querySelector('.cg-root')?.dispatchEvent(event);
      });
    await click(/c4 /);
    await press();
    expect(sent).toEqual([]);
    await click('Review c5');
    await press();
    expect(sent).toEqual([{ verb: 'approve', candidate_id: 'c5' }]);
  });

  it('says how sure a small predicted gain is', async () => {
    const view = sample('review');
    const current = view.candidates.find(each => each.id === view.current_id);
    const unsure = view.candidates.map(each => (each === current ? { ...each, predicted_odds: 7 } : each));
    await show({ ...view, candidates: unsure });
    expect(host.querySelector('.cg-actions')?.textContent).toContain(
      '7 of 10 such predicted gains come true'
    );
    expect(host.querySelector('.cg-action-bar .cg-tone-good')).toBeNull();
    await show(view);
    expect(host.querySelector('.cg-actions')?.textContent).not.toContain('such predicted gains');
  });

  it('has the interval of a ratio to a baseline, and calls no ratio good whose interval has one in it', async () => {
    await show(sample('measured'));
    const said = new Map(
      [...host.querySelectorAll('.cg-comparison tr')].map(row => [row.querySelector('th')?.textContent, row])
    );
    const eager = said.get('eager PyTorch');
    expect(eager?.textContent).toMatch(/c2 is 49% faster than it · 95%: 0\.497× to 0\.519× of its time/);
    expect(eager?.querySelector('.cg-tone-good')).not.toBeNull();
    const compiled = said.get('torch.compile');
    expect(compiled?.textContent).toMatch(/0\.6% faster than it · 95%: 0\.983× to 1[.0]*×/);
    expect(compiled?.querySelector('.cg-tone-neutral')).not.toBeNull();
  });

  it('closes the help of its keys by Escape', async () => {
    await show(sample('review'));
    await click('Keys');
    expect(host.querySelector('.cg-keys')).not.toBeNull();
    await act(() => {
      host
        .querySelector('.cg-root')
        ?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    });
    expect(host.querySelector('.cg-keys')).toBeNull();
  });

  it('rejects only with a reason', async () => {
    const sent: IAnswer[] = [];
    await show(sample('review'), answer => (sent.push(answer), Promise.resolve()));
    await click('Reject with reason…');
    expect(button(host, 'Reject c5').disabled).toBe(true);
    const area = host.querySelector('textarea');
    expect(document.activeElement).toBe(area);
    await act(() => type(area as HTMLTextAreaElement, '  spills registers '));
    await click('Reject c5');
    expect(sent).toEqual([{ verb: 'reject', candidate_id: 'c5', text: 'spills registers' }]);
  });

  it('asks once more before approving without proof', async () => {
    const sent: IAnswer[] = [];
    await show(sample('unproven'), answer => (sent.push(answer), Promise.resolve()));
    await click('Approve without proof…');
    expect(sent).toEqual([]);
    await click('Approve c1 without proof');
    expect(sent).toEqual([{ verb: 'approve_unproven', candidate_id: 'c1' }]);
  });

  it('runs exactly the edited text, and keeps a draft that was closed', async () => {
    const sent: IAnswer[] = [];
    await show(sample('review'), answer => (sent.push(answer), Promise.resolve()));
    await click('Edit…');
    expect(text(host, 'Text of c5').hasFocus).toBe(true);
    expect(button(host, 'Run edited').disabled).toBe(true);
    const draft = 'import cutlass\n\tx = "ü"  \n\n';
    await act(() => replace(text(host, 'Text of c5'), draft));
    await click('Close');
    await click('Edit…');
    expect(text(host, 'Text of c5').state.doc.toString()).toBe(draft);
    await click('Run edited');
    expect(sent).toEqual([{ verb: 'edit', candidate_id: 'c5', text: draft }]);
  });

  it('keeps an open draft when the view is updated under it', async () => {
    await show(sample('review'));
    await click('Edit…');
    await act(() => replace(text(host, 'Text of c5'), 'mine'));
    await show({ ...sample('review'), log: ['something new'] });
    expect(text(host, 'Text of c5').state.doc.toString()).toBe('mine');
  });

  it('says where candidates run once that is known', async () => {
    const view = sample('review');
    const on = (device: string) => show({ ...view, settings: { ...view.settings, device } });
    await on('NVIDIA H200');
    expect(host.querySelector('.cg-header')?.textContent).toContain('· on NVIDIA H200 ·');
    await on('auto');
    expect(host.querySelector('.cg-header')?.textContent).not.toContain('auto');
  });

  it("shows the kernel's refusal beside the buttons, and lets the analyst try again", async () => {
    await show(sample('review'), () => Promise.reject(new Error('the run is at compile c6')));
    await click('Approve c5');
    expect(host.querySelector('[role=alert]')?.textContent).toContain('the run is at compile c6');
    expect(button(host, 'Approve c5').disabled).toBe(false);
  });

  it('says so when the kernel is silent', async () => {
    vi.useFakeTimers();
    await show(sample('review'), () => new Promise(() => undefined));
    await click('Approve c5');
    expect(button(host, 'Approve c5').disabled).toBe(true);
    await act(() => void vi.advanceTimersByTime(5000));
    expect(host.querySelector('[role=alert]')?.textContent).toContain('No answer from the kernel yet');
    vi.useRealTimers();
  });
});

function press(
  key: string,
  on: Element = host.querySelector('.cg-root') as Element,
  more: KeyboardEventInit = {}
) {
  return act(async () => {
    on.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve();
    }
  });
}

describe('keys', () => {
  it('answer, and walk through candidates as they are listed', async () => {
    const sent: IAnswer[] = [];
    await show(sample('review'), answer => (sent.push(answer), Promise.resolve()));
    const current = () => host.querySelector('.cg-candidate[aria-selected=true]')?.textContent;
    expect(current()).toContain('c5');
    await press('k');
    expect(current()).not.toContain('c5');
    await press('j');
    expect(current()).toContain('c5');
    await press('j'); // There is none below.
    expect(current()).toContain('c5');
    await press('a');
    expect(sent).toEqual([{ verb: 'approve', candidate_id: 'c5' }]);
    await press('r');
    expect(host.querySelector('textarea')).not.toBeNull();
  });

  it('do nothing in a text, with a modifier, or where the verb is not allowed', async () => {
    const sent: IAnswer[] = [];
    const ask = (answer: IAnswer) => (sent.push(answer), Promise.resolve());
    await show(sample('review'), ask);
    await press('a', undefined, { ctrlKey: true });
    await press('r');
    await press('a', host.querySelector('textarea') as Element);
    await show(sample('running'), ask);
    await press('a');
    expect(sent).toEqual([]);
  });

  it("are not the host's, but those that save or search the notebook, or have Alt, are", async () => {
    await show(sample('review'));
    const root = host.querySelector('.cg-root') as HTMLElement;
    const kept = () => root.hasAttribute('data-lm-suppress-shortcuts');
    await press('x');
    expect(kept()).toBe(true);
    const item = host.querySelector('[role=treeitem]') as HTMLElement;
    for (const [modifiers, expected] of [
      [{}, true],
      [{ ctrlKey: true }, false]
    ] as const) {
      await press('x', item, modifiers);
      expect(item.hasAttribute('data-lm-suppress-shortcuts'), 'on what has the focus').toBe(expected);
    }
    for (const [key, on, expected] of [
      ['s', root, false],
      ['f', root, false],
      ['f', text(host, 'Source of c5').contentDOM, true],
      ['s', text(host, 'Source of c5').contentDOM, false]
    ] as const) {
      await press(key, on, { ctrlKey: true });
      expect(kept()).toBe(expected);
    }
    await press('R', root, { altKey: true, shiftKey: true });
    expect(kept()).toBe(false);
    await press('ArrowUp', text(host, 'Source of c5').contentDOM, { altKey: true });
    expect(kept()).toBe(true);
  });

  it('keep the focus in the widget when a panel closes', async () => {
    await show(sample('review'));
    await press('r');
    expect(document.activeElement?.tagName).toBe('TEXTAREA');
    await press('Escape', document.activeElement as Element);
    expect(host.querySelector('textarea')).toBeNull();
    expect(document.activeElement).toBe(host.querySelector('.cg-root'));
  });
});

describe('a slower candidate', () => {
  const slower = (): RunView => {
    const view = sample('review');
    const trend = view.trend.map(point =>
      point.candidate_id === 'c1'
        ? { ...point, time_us: 30 }
        : point.candidate_id === 'c5'
          ? { ...point, time_us: 33 }
          : point
    );
    return { ...view, incumbent_id: 'c1', trend };
  };
  it('is approved only when asked back', async () => {
    const sent: IAnswer[] = [];
    await show(slower(), answer => (sent.push(answer), Promise.resolve()));
    expect(host.querySelector('.cg-actions')?.textContent).toContain('c5 is 10% slower than c1');
    await click('Approve c5');
    expect(sent).toEqual([]);
    expect(document.activeElement).toBe(button(host, 'Cancel'));
    await click('Approve c5 nevertheless');
    expect(sent).toEqual([{ verb: 'approve', candidate_id: 'c5' }]);
  });
});

describe('comparison', () => {
  const cells = (label: string) =>
    [...host.querySelectorAll('.cg-comparison tr')]
      .find(row => row.querySelector('th')?.textContent === label)
      ?.textContent.replace(/\s+/g, ' ');

  it('puts a candidate beside its parent, the current kernel and the best, with what differs in words', async () => {
    const view = sample('review');
    await show({ ...view, incumbent_id: 'c1', best_id: 'c4' });
    const heads = [...host.querySelectorAll('.cg-comparison thead th')].map(cell => cell.textContent);
    expect(heads).toEqual(['c5', 'c1 parent, current', 'c4 best']);
    expect(cells('Time')).toMatch(/38\.1 µs ?predicted71\.8 µs −47%44\.9 µs −15%/);
    expect(host.querySelector('.cg-summary')?.textContent).toContain('it is 47% faster than c1');
  });

  it('does not compare a measured time with a predicted one', async () => {
    const view = sample('review');
    const measured = view.candidates.map(each => ({
      ...each,
      metrics: each.metrics.map(metric =>
        each.id === 'c5' && metric.key === 'time' ? { ...metric, basis: 'measured' as const } : metric
      )
    }));
    await show({ ...view, candidates: measured });
    expect(cells('Time')).not.toMatch(/%/);
  });
});

describe('where the time goes', () => {
  it('has a bar for each term, the longest of them the limit, in words too', async () => {
    const view = sample('review');
    const terms = [
      { name: 'memory', us: 20, part: false },
      { name: 'waits', us: 40, part: false },
      { name: 'loads in flight', us: 10, part: true },
      { name: 'launch', us: 2, part: false }
    ];
    const time = {
      key: 'time',
      label: 'Time',
      value: 80,
      text: '80 µs',
      basis: 'predicted',
      better: 'less'
    } as const;
    const given = view.candidates.map(each => ({ ...each, terms, metrics: [time] }));
    await show({ ...view, candidates: given });
    const rows = [...host.querySelectorAll('.cg-terms tr')];
    expect(rows.map(row => row.textContent)).toEqual([
      'memory20 µs',
      'waits (the limit)40 µs',
      'loads in flight10 µs',
      'launch2 µs',
      'whole call, predicted80 µs'
    ]);
    const widths = rows.map(row => row.querySelector<HTMLElement>('.cg-bar')?.style.width);
    expect(widths).toEqual(['25%', '50%', '12.5%', '2.5%', '100%']);
  });

  it('is left out where there is no prediction', async () => {
    await show({
      ...sample('review'),
      candidates: sample('review').candidates.map(each => ({ ...each, terms: [] }))
    });
    expect(host.querySelector('.cg-terms')).toBeNull();
  });
});

describe('what cannot be shown', () => {
  it.each([
    [{ ...sample('done'), schema_version: 2 }, 'format 2'],
    [{ ...sample('done'), candidates: undefined }, 'damaged'],
    [[], 'not a saved run'],
    [{}, 'Waiting for the run']
  ])('is explained', async (data, words) => {
    await act(() => mount(host, data, null));
    expect(host.textContent).toContain(words);
  });
});

async function settled(): Promise<void> {
  await act(async () => {
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve();
    }
  });
}

describe('a run saved by an earlier version', () => {
  it('has its config as chips', async () => {
    const view = sample('done') as unknown as { candidates: Record<string, unknown>[] };
    for (const candidate of view.candidates) {
      candidate.config = { vec: 8, fused: true };
      delete candidate.heat;
    }
    await show(view as unknown as RunView);
    expect(host.querySelector('.cg-summary .cg-config')?.textContent).toBe('vec=8fused=true');
  });
});

describe('the source as a profiler', () => {
  const heat = [
    { label: 'Sectors', unit: 'sectors of 32 bytes', total: 200, lines: { 2: 150, 3: 0.1 } },
    { label: 'Instructions', unit: 'warp instructions', total: 50, lines: { 1: 5 } }
  ];
  const code = {
    candidate_id: 'c1',
    workload: 'main',
    ptx: [
      { text: '.visible .entry k()', line: 0, stall: null },
      { text: 'ld.global.f32 %f1, [%rd1];', line: 2, stall: null },
      { text: 'st.global.f32 [%rd2], %f1;', line: 3, stall: null }
    ],
    sass: [
      { text: 'k:', line: 0, stall: null },
      { text: '0000  LDG.E R2, desc[UR4][R2.64] ;', line: 2, stall: 4 }
    ],
    sass_note: ''
  };

  function profiled(): RunView {
    const view = sample('unproven');
    const first = view.candidates[0];
    if (first === undefined) {
      throw new Error('the sample has no candidate');
    }
    view.candidates = [{ ...first, id: 'c1', source: 'a = 1\nb = load()\nstore(b)\n', diff: [], heat }];
    return { ...view, current_id: 'c1' };
  }
  const figures = () => [...host.querySelectorAll('.cg-heat')].map(each => each.textContent);
  const marked = (label: string) =>
    [...text(host, label).dom.querySelectorAll('.cg-cm-linked')].map(each => each.textContent);

  it('has the share of the limiting resource beside each line, or of another', async () => {
    await show(profiled());
    expect(figures()).toEqual(['75%', '<0.1%']);
    const select = host.querySelector<HTMLSelectElement>('.cg-source select') as HTMLSelectElement;
    for (const [value, expected] of [
      ['Instructions', ['10%']],
      ['', []]
    ] as const) {
      await act(() => {
        select.value = value;
        select.dispatchEvent(new Event('change', { bubbles: true }));
      });
      expect(figures()).toEqual(expected);
    }
  });

  it('leads from a line back to what the evidence, diagnostics and notes say of it', async () => {
    const view = profiled();
    const [first] = view.candidates;
    if (first) {
      const row = { label: 'Time', value: '71.8 µs', detail: '', tone: 'neutral', basis: '' } as const;
      first.evidence = [
        { ...row, key: 'time' },
        { ...row, key: 'hot', label: 'Line 2', value: '75%', detail: 'PTX line 3' }
      ];
      first.diagnostics = [
        { severity: 'warning', code: 'W1', message: 'slow', line: 2, excerpt: '', suggestion: '' }
      ];
      first.notes = [
        {
          id: 'n1',
          candidate_id: 'c1',
          pin: false,
          what: 'lines 3 to 3',
          first: 3,
          last: 3,
          quote: '',
          text: 'why?',
          state: 'open'
        }
      ];
    }
    await show(view);
    const said = [...host.querySelectorAll<HTMLButtonElement>('.cg-said')];
    expect(said.map(each => each.ariaLabel)).toEqual([
      '2 entries of the evidence name line 2',
      '1 entry of the evidence names line 3'
    ]);
    expect(said[0]?.title.split('\n').slice(1)).toEqual(['W1 slow', 'Line 2 · 75% · PTX line 3']);
    const marked = () => [...host.querySelectorAll('.cg-pointed')];
    await act(() => said[0]?.click());
    expect(marked().map(each => each.className.includes('cg-diagnostic'))).toEqual([true, false]);
    expect(marked()[1]?.textContent).toContain('Line 2');
    expect(host.ownerDocument.activeElement).toBe(marked()[0]);
    await act(() => said[1]?.click());
    expect(marked().map(each => each.textContent)).toEqual([expect.stringContaining('why?')]);
  });

  it('has PTX and SASS beside it, asked for once, with the lines that belong to one marked in all', async () => {
    const asked: unknown[] = [];
    const look: Look = query => (asked.push(query), Promise.resolve(code));
    await show(profiled(), undefined, look);
    await click('PTX');
    await click('SASS');
    expect(asked).toEqual([{ query: 'machine_code', candidate_id: 'c1', general: true }]);
    expect(text(host, 'SASS').state.doc.line(2).text).toContain('LDG.E');
    expect(text(host, 'SASS').dom.querySelector('.cg-heat')?.textContent).toBe('4');
    const view = profiled();
    const first = view.candidates[0];
    if (first) {
      first.evidence = [
        { key: 'hot', label: 'Line 2', value: '75%', detail: '', tone: 'neutral', basis: '' }
      ];
    }
    await show(view, undefined, look);
    await click('Line 2');
    expect(marked('Source of c1')).toEqual(['b = load()']);
    expect(marked('PTX')).toEqual(['ld.global.f32 %f1, [%rd1];']);
    expect(marked('SASS')).toEqual(['0000  LDG.E R2, desc[UR4][R2.64] ;']);
    await click('PTX');
    await click('SASS');
    expect(host.querySelectorAll('.cg-pane')).toHaveLength(1);
  });

  it('says why there is no machine code, and asks for none without a kernel', async () => {
    await show(profiled());
    await click('PTX');
    expect(host.querySelector('.cg-source .cg-note')?.textContent).toBe('nothing is known');
    await show(profiled(), undefined, () =>
      Promise.resolve({ ...code, sass: [], sass_note: 'not installed' })
    );
    await show(profiled(), null);
    expect(button(host, 'PTX').disabled).toBe(true);
  });

  it('marks in the editor what the gate and the lint rules say of the draft', async () => {
    const checked: unknown[] = [];
    const look: Look = query => {
      checked.push(query.text);
      return Promise.resolve([
        {
          severity: 'error',
          code: 'G03-import',
          message: 'no os',
          line: 1,
          excerpt: '',
          suggestion: 'Remove it.'
        }
      ]);
    };
    await show(sample('review'), undefined, look);
    await click('Edit…');
    const view = text(host, 'Text of c5');
    await act(() => replace(view, 'import os\n'));
    forceLinting(view);
    await settled();
    const found: string[] = [];
    forEachDiagnostic(view.state, (each, from, to) =>
      found.push(`${each.severity} ${from}-${to} ${each.message}`)
    );
    expect(checked.at(-1)).toBe('import os\n');
    expect(found).toEqual(['error 0-9 no os\nRemove it.']);
  });
});
