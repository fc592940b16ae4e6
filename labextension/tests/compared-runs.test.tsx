import { getOriginalDoc } from '@codemirror/merge';
import { act } from 'preact/test-utils';
import { describe, expect, it, vi } from 'vitest';
import { mountComparison, type IComparedRun } from '../src/run/compared-runs';
import type { CandidateView, RunView } from '../src/schema';
import { host } from './host';
import { button, sample, text } from './samples';

const look = (mnemonic: string) => () =>
  Promise.resolve({ ptx: [{ text: mnemonic, line: 0, stall: null }], sass: [], sass_note: '' });

/** The done sample with its accepted candidate, c5, changed. */
function changed(change: (candidate: CandidateView, view: RunView) => void): RunView {
  const view = sample('done');
  change(view.candidates.at(-1) as CandidateView, view);
  return view;
}

/** As measured on a GPU beside a baseline. */
const measured = (timeUs: number, device = 'cuda:1 NVIDIA H200') =>
  changed(candidate => {
    Object.assign(candidate, { baselines: { eager: 90 } });
    Object.assign(candidate.metrics[0] ?? {}, {
      value: timeUs,
      text: `${timeUs} µs ± 0.2 µs`,
      basis: 'measured'
    });
    Object.assign(candidate.evidence.find(row => row.key === 'device') ?? {}, { value: device });
  });

const run = (title: string, data: unknown, more: Partial<IComparedRun> = {}): IComparedRun => ({
  title,
  data,
  look: look('ld;'),
  onOpen: () => undefined,
  ...more
});

async function show(before: IComparedRun, after: IComparedRun): Promise<void> {
  await act(() => mountComparison(host, [before, after]));
}

/** The cells of a row as text: the first run's, the second's, the change. */
function row(label: string): string[] | undefined {
  const found = [...host.querySelectorAll('tbody tr')].find(
    each => each.querySelector('th')?.textContent === label
  );
  return found && [...found.querySelectorAll('td')].map(cell => cell.textContent);
}

describe('comparing two runs', () => {
  it('has the accepted candidates beside each other, with what changes', async () => {
    await show(run('A', measured(30)), run('B', measured(15, 'cuda:0 NVIDIA H200')));
    expect([...host.querySelectorAll('thead th')].map(each => each.textContent)).toEqual([
      'A c5',
      'B c5',
      'change'
    ]);
    expect(row('Time')).toEqual(['30 µs ± 0.2 µsmeasured', '15 µs ± 0.2 µsmeasured', '−50%']);
    expect(row('Speedup over eager')).toEqual(['3×measured', '6×measured', '+100%']);
    expect(row('Registers per thread')?.[2]).toBe('=');
    expect(row('Device')).toEqual(['NVIDIA H200sm_90a for H200', 'NVIDIA H200sm_90a for H200', '']);
    expect(row('Verdict')?.[0]).toBe('✓ accepted');
    expect(row('Steps used')).toEqual(['5 of at most 8 candidates', '5 of at most 8 candidates', '=']);
    for (const label of ['Problem', 'Run', 'Provider', 'Candidate', 'Timed by', 'Shared memory per block']) {
      expect(row(label), label).toBeDefined();
    }
  });

  it('does not compare times of two kinds or devices, nor what depends on them, and says why', async () => {
    await show(run('A', sample('done')), run('B', measured(15)));
    expect(row('Time')?.[2]).toBe('not compared: one is measured, one predicted');
    expect(row('Speedup over eager')).toEqual(['–', '6×measured', '']);
    expect(row('Registers per thread')?.[2]).toBe('=');
    const labels = [...host.querySelectorAll('tbody th')].map(each => each.textContent);
    expect(labels.indexOf('Speedup over eager'), 'below the time').toBe(labels.indexOf('Time') + 1);
    await show(run('A', measured(30)), run('B', measured(15, 'cuda:0 NVIDIA H100')));
    expect(row('Time')?.[2]).toBe('not compared: different devices');
    expect(row('Speedup over eager')?.[2]).toBe('not compared: different devices');
    const other = changed((_, view) => Object.assign(view.settings, { gpu: 'B200' }));
    await show(run('A', sample('done')), run('B', other)); // predicted for another GPU
    expect(row('Time')?.[2]).toBe('not compared: different devices');
  });

  it('compares no number of different problems, and says so', async () => {
    const other = changed((_, view) =>
      Object.assign(view.problem.workloads[0] ?? {}, { text: '(x: bf16[1])' })
    );
    await show(run('A', sample('done')), run('B', other));
    expect(host.querySelector('.cg-note')?.textContent).toMatch(/^The two runs have different problems/);
    expect([...host.querySelectorAll('tbody tr')].map(each => each.lastElementChild?.textContent)).toEqual(
      expect.not.arrayContaining([expect.stringMatching(/./)])
    );
    await show(run('A', sample('done')), run('B', sample('review')));
    expect(host.querySelector('.cg-note')).toBeNull();
  });

  it('has the speedup over the first kernel of each run', async () => {
    await show(run('A', sample('done')), run('B', sample('pinned')));
    expect(row('Speedup over the first kernel of its run')).toEqual(['1.88× c1', '–', '']);
  });

  it('has the changed source and PTX, and any other candidate that is chosen', async () => {
    await show(run('A', sample('done')), run('B', sample('done'), { look: look('st;') }));
    expect(host.textContent).toContain('Source from A c5 to B c5: the same.');
    const select = host.querySelectorAll('select')[0] as HTMLSelectElement;
    await act(() => {
      select.value = 'c1';
      select.dispatchEvent(new Event('change', { bubbles: true }));
    });
    const source = (id: string) => sample('done').candidates.find(each => each.id === id)?.source;
    const shown = text(host, 'Source from A c1 to B c5');
    expect([getOriginalDoc(shown.state).toString(), shown.state.doc.toString()]).toEqual([
      source('c1'),
      source('c5')
    ]);
    expect(host.querySelector('[aria-label="Changed parameters"]')).not.toBeNull();
    await act(() => button(host, 'Compare PTX').click());
    await act(() => new Promise(resolve => setTimeout(resolve)));
    const ptx = text(host, 'PTX from A c1 to B c5');
    expect([getOriginalDoc(ptx.state).toString(), ptx.state.doc.toString()]).toEqual(['ld;', 'st;']);
  });

  it('opens each run, and says why one cannot be compared', async () => {
    const onOpen = vi.fn();
    await show(run('A', sample('done'), { onOpen }), run('B', sample('done')));
    button(host, 'A').click();
    expect(onOpen).toHaveBeenCalledOnce();
    await show(run('A', sample('started')), run('B', { schema_version: 99 }));
    expect(host.textContent).toContain('A has no candidate to compare yet.');
    expect(host.textContent).toContain('B: This run was saved in format 99');
  });

  it('shows hostile text as text', async () => {
    await show(run('<b>x</b>', sample('hostile')), run('B', sample('hostile')));
    expect(host.querySelector('b, img, script')).toBeNull();
  });
});
