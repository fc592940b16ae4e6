import { act } from 'preact/test-utils';
import { beforeEach, describe, expect, it } from 'vitest';
import { mount } from '../src/run/mount';
import type { IAnswer } from '../src/run/verbs';
import type { RunView } from '../src/schema';
import { host } from './host';
import { button, sample } from './samples';

let sent: IAnswer[];

beforeEach(() => {
  sent = [];
});

async function show(view: RunView): Promise<void> {
  const ask = (answer: IAnswer) => (sent.push(answer), Promise.resolve());
  await act(() => mount(host, view, { ask, look: () => Promise.reject(new Error('none')) }));
}

async function settled(change: () => void): Promise<void> {
  await act(async () => {
    change();
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve();
    }
  });
}

const chooser = () => host.querySelector<HTMLSelectElement>('[aria-label="Approve for"]');

async function choose(until: string, amount?: string): Promise<void> {
  await settled(() => {
    const select = chooser() as HTMLSelectElement;
    select.value = until;
    select.dispatchEvent(new Event('change', { bubbles: true }));
  });
  if (amount !== undefined) {
    await settled(() => {
      const input = host.querySelector('.cg-scope input') as HTMLInputElement;
      input.value = amount;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    });
  }
}

describe('the scope of an approval', () => {
  it.each([
    ['steps', '4', '4 steps'],
    ['floor', '2.5', 'within 2.5%'],
    ['slower', undefined, 'until slower']
  ])('%s is sent with it, once', async (until, amount, text) => {
    await show(sample('review'));
    await choose(until, amount);
    await settled(() => button(host, 'Approve c5').click());
    expect(sent).toEqual([{ verb: 'approve', candidate_id: 'c5', text }]);
    expect(chooser()?.value).toBe('');
  });

  it('is this step alone unless another is chosen, and only where there is something to approve', async () => {
    await show(sample('review'));
    expect([...(chooser()?.options ?? [])].map(each => each.value)).toEqual(['', 'steps', 'floor', 'slower']);
    await settled(() => button(host, 'Approve c5').click());
    expect(sent).toEqual([{ verb: 'approve', candidate_id: 'c5' }]);
    await show(sample('pinned'));
    expect(chooser()).toBeNull();
  });

  it('is told while it holds', async () => {
    const told = () =>
      [...host.querySelectorAll('.cg-note')]
        .map(each => each.textContent)
        .filter(text => /by itself/.test(text));
    await show(sample('running'));
    expect(told()).toEqual(['Approves by itself, the next 3 steps: 0 given. Stop ends it.']);
    await show({ ...sample('running'), scope: { text: 'until slower', used: 1, ended: 'c6 is slower' } });
    expect(told()).toEqual([]);
  });
});
