import { getOriginalDoc } from '@codemirror/merge';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { act } from 'preact/test-utils';
import { describe, expect, it } from 'vitest';
import { mount } from '../src/run/mount';
import type { Look } from '../src/run/verbs';
import type { RunView } from '../src/schema';
import { host } from './host';
import { button, sample, text } from './samples';

interface IPythons {
  metrics: { label: string; before: string; after: string; change: string; tone: string }[];
  config_changes: { name: string; old: string; new: string }[];
}

/** What Python's comparison says of c1 and c5 of the review sample (tests/packaging/make_samples.py). */
const PYTHONS = JSON.parse(readFileSync(resolve(import.meta.dirname, 'compared.json'), 'utf8')) as IPythons;

const look: Look = ({ candidate_id: id }) => {
  const ptx = ['ld;', ...(id === 'c5' ? ['add;'] : [])].map(each => ({ text: each, line: 0, stall: null }));
  return id === 'c2'
    ? Promise.reject(new Error('c2 is not compiled'))
    : Promise.resolve({ candidate_id: id, workload: 'main', ptx, sass: [], sass_note: '' });
};

async function show(view: RunView = sample('review'), attached = true): Promise<void> {
  await act(() => mount(host, view, attached ? { ask: () => Promise.resolve(), look } : null));
}

async function click(name: string | RegExp, more: MouseEventInit = {}): Promise<void> {
  await act(async () => {
    button(host, name).dispatchEvent(new MouseEvent('click', { bubbles: true, ...more }));
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve();
    }
  });
}

const rows = () =>
  [...host.querySelectorAll('[role=tabpanel] .cg-comparison tbody tr')].map(row => ({
    label: row.querySelector('th')?.textContent,
    cells: [...row.querySelectorAll('td')].map(cell =>
      [...cell.childNodes]
        .map(each => each.textContent)
        .join(' ')
        .trim()
    ),
    tone: /cg-tone-(\w+)/.exec(row.lastElementChild?.className ?? '')?.[1] ?? 'neutral'
  }));
const heads = () => [...host.querySelectorAll('.cg-comparison thead th')].map(each => each.textContent);

describe('comparing two candidates', () => {
  it("says the same as Python's comparison: numbers, counters, changes, parameters", async () => {
    await show();
    await click('Compare');
    expect(heads()).toEqual(['c1', 'c5', 'change']);
    expect(rows()).toEqual(
      PYTHONS.metrics.map(({ label, before, after, change, tone }) => ({
        label,
        cells: [before || '–', after || '–', change],
        tone
      }))
    );
    expect(rows().map(row => row.label)).toContain('Warp instructions');
    expect(host.querySelector('[aria-label="Changed parameters"]')?.textContent).toBe(
      PYTHONS.config_changes.map(each => `${each.name}: ${each.old} → ${each.new}`).join('')
    );
  });

  it('is of any two: by the list, or by a click on the lineage with Ctrl', async () => {
    await show();
    await click(/^c3/, { ctrlKey: true });
    expect(heads()).toEqual(['c3', 'c5', 'change']);
    expect(host.querySelector('[aria-selected=true].cg-candidate')?.textContent).toContain('c5');
    const select = host.querySelector<HTMLSelectElement>('.cg-compare-head select') as HTMLSelectElement;
    await act(() => {
      select.value = 'c4';
      select.dispatchEvent(new Event('change', { bubbles: true }));
    });
    expect(heads()).toEqual(['c4', 'c5', 'change']);
    await click(/^c2/);
    expect(heads()).toEqual(['c4', 'c2', 'change']);
    await click(/^c4/); // The one it was compared with: then with its parent.
    expect(heads()).toEqual(['c3', 'c4', 'change']);
  });

  it('has the changed source, also of candidates that are not related', async () => {
    await show();
    await click(/^c4/, { ctrlKey: true });
    const shown = text(host, 'Source from c4 to c5');
    const source = (id: string) => sample('review').candidates.find(each => each.id === id)?.source;
    expect(getOriginalDoc(shown.state).toString()).toBe(source('c4'));
    expect(shown.state.doc.toString()).toBe(source('c5'));
  });

  it('has the changed PTX when it is asked for, and says why there is none', async () => {
    await show();
    await click('Compare');
    await click('Compare PTX');
    const shown = text(host, 'PTX from c1 to c5');
    expect(getOriginalDoc(shown.state).toString()).toBe('ld;');
    expect(shown.state.doc.toString()).toBe('ld;\nadd;');
    await click(/^c2/, { ctrlKey: true });
    expect(host.querySelector('.cg-note-bad')?.textContent).toBe('c2 is not compiled');
    await click(/^c4/);
    await click(/^c3/, { ctrlKey: true });
    expect(host.textContent).toContain('PTX from c3 to c4: the same.');
  });

  it('works on a saved run, but for the machine code', async () => {
    await show(sample('review'), false);
    await click('Compare');
    expect(rows()).toHaveLength(PYTHONS.metrics.length);
    expect(button(host, 'Compare PTX').disabled).toBe(true);
  });

  it('says so where there is one candidate only', async () => {
    await show(sample('unproven'));
    await click('Compare');
    expect(host.querySelector('[role=tabpanel]')?.textContent).toBe(
      'There is no other candidate to compare c1 with yet.'
    );
  });
});
