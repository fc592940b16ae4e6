import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Profile, ProfileTab } from '../src/run/profile';
import type { Look } from '../src/run/verbs';
import type { PlotList, PlotView } from '../src/schema';
import { host } from './host';
import { givePlotly, takePlotly } from './plotly';
import { button, unattached } from './samples';

const answer = (name: string): unknown =>
  JSON.parse(readFileSync(resolve(import.meta.dirname, `answers/${name}.json`), 'utf8'));
/** What Python says of a run recorded on the emulator (tests/packaging/make_samples.py). */
const LIST = answer('plots') as PlotList;
const PLOTS = answer('plot') as Record<string, PlotView>;

let plotly: ReturnType<typeof givePlotly>;

beforeEach(() => {
  plotly = givePlotly();
});

const answering = () =>
  vi.fn<Look>(({ query, text = '' }) => Promise.resolve(query === 'plots' ? LIST : PLOTS[text]));

/** Makes a change, and draws what follows from it: a plot is asked for once the list is drawn. */
async function settled(change: () => unknown): Promise<void> {
  for (const step of [change, () => undefined, () => undefined]) {
    await act(async () => {
      step();
      await new Promise(done => setTimeout(done));
    });
  }
}

const onWant = vi.fn();

function show(look: Look, { known = '1', wanted = '' } = {}): Promise<void> {
  const given = { id: 'c1', known, look, run: 'r-1', wanted, onWant };
  return settled(() => render(<Profile {...given} />, host));
}

const asked = (look: ReturnType<typeof answering>) =>
  look.mock.calls.map(([{ query, text }]) => (text === undefined ? query : `${query} ${text}`));
const radio = (name: string) => host.querySelector<HTMLInputElement>(`input[value=${name}]`);
const figure = () => host.querySelector<HTMLElement>('[role=img]');

describe('the plots of a candidate', () => {
  it('are listed, and the first is drawn with its title as its text', async () => {
    const look = answering();
    await show(look);
    expect(asked(look)).toEqual(['plots', 'plot roofline']);
    expect([...host.querySelectorAll('input')].map(each => each.value)).toEqual(
      LIST.plots.map(each => each.name)
    );
    expect(radio('roofline')?.checked).toBe(true);
    expect(host.textContent).toContain(LIST.plots[0]?.help);
    const { data, layout } = PLOTS.roofline?.figure ?? {};
    expect(plotly.react).toHaveBeenCalledExactlyOnceWith(figure(), data, layout, {
      displayModeBar: false,
      scrollZoom: false
    });
    expect(figure()?.getAttribute('aria-label')).toContain(PLOTS.roofline?.title);
  });

  it('are asked for when they are chosen; one that has nothing to show cannot be, and says why', async () => {
    const look = answering();
    await show(look);
    radio('memory')?.click();
    expect(onWant).toHaveBeenCalledExactlyOnceWith('memory');
    await show(look, { wanted: 'memory' });
    expect(asked(look)).toEqual(['plots', 'plot roofline', 'plot memory']);
    expect(plotly.purge).toHaveBeenCalledTimes(1);
    expect(radio('stalls')?.disabled).toBe(true);
    expect(host.textContent).toContain('stalls: Nsight Compute did not profile it');
    await show(look, { wanted: 'stalls' });
    expect(radio('roofline')?.checked).toBe(true);
  });

  it('stay until those that say more are there', async () => {
    const look = answering();
    await show(look);
    let answered: (data: unknown) => void = () => undefined;
    look.mockImplementation(() => new Promise(done => (answered = done)));
    await show(look, { known: '2' });
    expect(figure()).not.toBeNull();
    await settled(() => answered(PLOTS.roofline));
    expect(asked(look).slice(2).sort()).toEqual(['plot roofline', 'plots']);
    expect(plotly.purge).not.toHaveBeenCalled();
  });

  it('have their numbers as tables that say what is left out', async () => {
    const { memory } = PLOTS;
    const [first] = memory?.tables ?? [];
    if (memory === undefined || first === undefined) {
      throw new Error('the sample has no table');
    }
    const cut = { ...memory, tables: [{ ...first, count: 900 }] };
    await show(({ query }) => Promise.resolve(query === 'plots' ? LIST : cut), { wanted: 'memory' });
    const heads = [...host.querySelectorAll('th[scope=col]')].map(each => each.textContent);
    expect(heads).toEqual(first.columns);
    expect(host.querySelectorAll('tbody tr')).toHaveLength(first.rows.length);
    expect(host.querySelector('caption')?.textContent).toBe(
      `${first.title}: the first ${first.rows.length} of 900`
    );
  });

  it('are saved as files that name run, candidate and plot', async () => {
    const urls: Blob[] = [];
    Object.assign(URL, {
      createObjectURL: (blob: Blob) => `blob:${urls.push(blob)}`,
      revokeObjectURL: vi.fn()
    });
    const saved: string[] = [];
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
      saved.push(this.download);
    });
    await show(answering());
    button(host, 'CSV').click();
    expect(saved).toEqual(['r-1-c1-roofline.csv']);
    expect(urls[0]?.size).toBe(new TextEncoder().encode(PLOTS.roofline?.csv).length);
    plotly.downloadImage.mockRejectedValueOnce(new Error('no canvas'));
    await settled(() => button(host, 'PNG').click());
    expect(plotly.downloadImage.mock.lastCall?.[1]).toMatchObject({
      format: 'png',
      filename: 'r-1-c1-roofline'
    });
    expect(host.querySelector('[role=status]')?.textContent).toBe('no canvas');
    await settled(() => button(host, 'SVG').click());
    expect(plotly.downloadImage.mock.lastCall?.[1]).toMatchObject({ format: 'svg' });
    expect(host.querySelector('[role=status]')?.textContent).toBe('');
  });

  it('of warps can be zoomed by the wheel, and saved as a trace', async () => {
    const saved: string[] = [];
    Object.assign(URL, { createObjectURL: () => 'blob:1', revokeObjectURL: vi.fn() });
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
      saved.push(this.download);
    });
    await show(answering(), { wanted: 'timeline' });
    expect(plotly.react.mock.lastCall?.[3]).toMatchObject({ scrollZoom: true });
    expect(JSON.parse(PLOTS.timeline?.trace ?? '')).toHaveProperty('traceEvents');
    button(host, 'Perfetto').click();
    expect(saved).toEqual(['r-1-c1-timeline.trace.json']);
    await show(answering(), { wanted: 'roofline' });
    expect([...host.querySelectorAll('button')].map(each => each.textContent)).not.toContain('Perfetto');
  });

  it('are a sentence where there are none', async () => {
    const plots = LIST.plots.map(each => ({ ...each, missing: 'it is not compiled' }));
    const look = vi.fn<Look>(() => Promise.resolve({ ...LIST, plots }));
    await show(look);
    expect(host.textContent).toContain('There is nothing to plot yet.');
    expect(asked(look)).toEqual(['plots']);
  });

  it('say why they are not there', async () => {
    await show(() => Promise.reject(new Error('run r-1 has no candidate c1')));
    expect(host.querySelector('[role=status]')?.textContent).toBe('run r-1 has no candidate c1');
  });

  it('say why they cannot be drawn, and load plotly again when they are next shown', async () => {
    takePlotly();
    const look = vi.fn<Look>(({ query }) =>
      query === 'plotly'
        ? Promise.reject(new Error('plotly is not installed'))
        : Promise.resolve(query === 'plots' ? LIST : PLOTS.roofline)
    );
    await show(look);
    expect(host.querySelector('[role=status]')?.textContent).toBe('plotly is not installed');
    await settled(() => render(null, host));
    await show(look);
    expect(asked(look).filter(query => query === 'plotly')).toHaveLength(2);
  });

  it('wait for a kernel in a saved run', () => {
    void act(() => render(<ProfileTab {...unattached('review')} />, host));
    expect(host.textContent).toBe('Plots are shown while a kernel is attached.');
  });
});
