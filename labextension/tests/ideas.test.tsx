import { act } from 'preact/test-utils';
import { describe, expect, it } from 'vitest';
import { mount } from '../src/run/mount';
import type { IdeaView, RunView } from '../src/schema';
import { host } from './host';
import { sample } from './samples';

const OPEN: IdeaView = {
  id: 'i2',
  claim: '<b>two rows</b> a warp',
  by: 'gpt',
  status: 'open',
  expected: 'time -20%',
  came: '',
  cost: 'large',
  tries: ['c3']
};
const HELD: IdeaView = {
  ...OPEN,
  id: 'i1',
  claim: 'wider loads',
  status: 'held',
  came: 'time -18%',
  tries: ['c2']
};

async function shown(ideas: IdeaView[] | undefined): Promise<Element | null> {
  const view = { ...sample('model'), ideas } as RunView;
  await act(() => mount(host, view, null));
  return host.querySelector('.cg-ideas');
}

describe('the ideas of a model', () => {
  it('are a table with what was expected and what came', async () => {
    const rows = [...((await shown([OPEN, HELD]))?.querySelectorAll('tbody tr') ?? [])];
    expect(rows.map(row => [...row.children].map(cell => cell.textContent.trim()))).toEqual([
      ['i2: <b>two rows</b> a warp', 'not carried out yet (c3)', 'time -20%', ''],
      ['i1: wider loads', 'held (c2)', 'time -20%', 'time -18%']
    ]);
    expect(host.querySelector('.cg-ideas b')).toBeNull();
    expect(host.textContent).toContain('2, 1 not carried out yet');
  });

  it('are not there where there are none, nor in a run saved before there were any', async () => {
    expect(await shown([])).toBeNull();
    expect(await shown(undefined)).toBeNull();
  });
});
