import { act } from 'preact/test-utils';
import { beforeEach, describe, expect, it } from 'vitest';
import { mount } from '../src/run/mount';
import { linesAround, ownLines, shownLines } from '../src/run/notes';
import type { Ask, IAnswer } from '../src/run/verbs';
import type { RunView } from '../src/schema';
import { host } from './host';
import { button, sample, text, type } from './samples';

let sent: IAnswer[];

beforeEach(() => {
  sent = [];
});

const taken: Ask = answer => (sent.push(answer), Promise.resolve());

async function show(view: RunView, ask: Ask | null = taken): Promise<void> {
  const look = () => Promise.reject(new Error('none'));
  await act(() => mount(host, view, ask && { ask, look }));
}

async function settled(change: () => void): Promise<void> {
  await act(async () => {
    change();
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve();
    }
  });
}

const click = (name: string | RegExp) => settled(() => button(host, name).click());
const press = (key: string, on: Element) =>
  settled(() => on.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })));
const area = () => host.querySelector('.cg-source textarea') as HTMLTextAreaElement;
const chosen = () => [...host.querySelectorAll<HTMLInputElement>('.cg-line-number')].map(each => each.value);
const listed = () => [...host.querySelectorAll('.cg-noted')].map(each => each.textContent);

function select(first: number, last: number): Promise<void> {
  const view = text(host, 'Source of c5');
  const { doc } = view.state;
  return settled(() =>
    view.dispatch({ selection: { anchor: doc.line(first).from, head: doc.line(last).to } })
  );
}

describe('comments and pins', () => {
  it('are made on the lines that are selected, with words', async () => {
    await show(sample('review'));
    await select(10, 14);
    await click('Comment…');
    expect(chosen()).toEqual(['10', '14']);
    expect(button(host, 'Comment').disabled).toBe(true);
    await act(() => type(area(), ' why so? '));
    await click('Comment');
    expect(sent).toEqual([{ verb: 'comment', candidate_id: 'c5', target_id: 'c5:10-14', text: 'why so?' }]);
    expect(area()).toBeNull();
  });

  it('leave out a line of which nothing is selected', async () => {
    await show(sample('review'));
    const view = text(host, 'Source of c5');
    await settled(() =>
      view.dispatch({ selection: { anchor: view.state.doc.line(3).from, head: view.state.doc.line(5).from } })
    );
    await click('Pin…');
    expect(chosen()).toEqual(['3', '4']);
  });

  it('pin a parameter or a function by name, also without words', async () => {
    await show(sample('review'));
    await click('Pin…');
    const what = host.querySelector('.cg-source .cg-prompt select') as HTMLSelectElement;
    const names = [...what.options].map(each => each.value);
    expect(names).toEqual([
      '',
      'threads_per_row',
      'vec',
      'rows_per_block',
      'TUNABLE',
      'row_softmax',
      'launch'
    ]);
    await settled(() => {
      what.value = 'vec';
      what.dispatchEvent(new Event('change', { bubbles: true }));
    });
    expect(chosen()).toEqual([]);
    await click('Pin');
    expect(sent).toEqual([{ verb: 'pin', candidate_id: 'c5', target_id: 'c5:vec', text: '' }]);
  });

  it('have keys, which also work in the text that is read, and Escape closes', async () => {
    await show(sample('review'));
    const content = host.querySelector('.cg-source .cm-content') as Element;
    await press('p', content);
    expect(host.querySelector('[aria-label="Pin in c5"]')).not.toBeNull();
    await press('Escape', area());
    expect(host.querySelector('.cg-source .cg-prompt')).toBeNull();
    await press('m', host.querySelector('.cg-root') as Element);
    expect(document.activeElement).toBe(area());
    await press('p', area());
    expect(host.querySelector('[aria-label="Comment on c5"]')).not.toBeNull();
  });

  it('are listed with what became of them, marked in the text, and can be taken away', async () => {
    await show(sample('pinned'));
    expect(host.querySelector('.cg-status')?.textContent).toContain('Your review');
    expect(listed()).toHaveLength(3);
    expect(listed()[0]).toMatch(/^pin lines 18–20 of c1✕ brokenour own running sum: leave it/);
    expect(listed()[1]).toMatch(/^pin vec of c1vec = 4✓ kept/);
    expect(listed()[2]).toMatch(/^comment line 21 of c1running_max = block_maxopencould this wait/);
    expect(host.querySelector('.cg-diagnostics')?.textContent).toContain('lines 18–20 of c1 must not change');
    expect(host.querySelectorAll('.cg-cm-comment')).toHaveLength(1);
    expect(host.querySelector('[data-verb=approve_unproven]')).toBeNull();
    await click(/^Lift n1/);
    await click(/^Remove n3/);
    expect(sent.map(each => [each.verb, each.target_id])).toEqual([
      ['lift', 'n1'],
      ['lift', 'n3']
    ]);
  });

  it('say what the kernel refuses', async () => {
    await show(sample('review'), () => Promise.reject(new Error('c5 has no text at lines 2 to 2')));
    await click('Pin…');
    await click('Pin');
    expect(host.querySelector('.cg-source [role=alert]')?.textContent).toContain('no text at lines 2 to 2');
  });

  it('are read, and not made, where no kernel is attached', async () => {
    await show(sample('pinned'), null);
    expect(listed()).toHaveLength(3);
    expect(host.querySelector('.cg-noted .cg-button, [data-verb=pin]')).toBeNull();
  });

  it('on lines of the specialised text are on those of the candidate that compile to the same', async () => {
    const view = sample('review');
    const last = view.candidates.at(-1);
    if (last === undefined) {
      throw new Error('the sample has no candidate');
    }
    const source = 'one = 1\ntwo = 2\nthree = 3\n';
    last.specialised = {
      source,
      diff: [],
      evidence: [],
      diagnostics: [],
      heat: [],
      same_lines: { 19: 1, 22: 2 }
    };
    await show(view);
    expect(listed()[1]).toMatch(/comment lines 19–20 of c1/);
    expect(host.querySelectorAll('.cg-cm-comment')).toHaveLength(1);
    await select(1, 2);
    await click('Comment…');
    await act(() => type(area(), 'x'));
    await click('Comment');
    expect(sent[0]?.target_id).toBe('c5:19-22');
    await select(3, 3);
    await click('Comment…');
    await act(() => type(area(), 'x'));
    expect(host.querySelector('.cg-source [role=status]')?.textContent).toContain('the comment quotes them');
    expect(host.querySelector('.cg-source')?.textContent).toContain('Templates read no comments');
    await click('Comment');
    expect(sent[1]?.target_id).toMatch(/^c5:\d+-\d+$/);
    expect(sent[1]?.text).toMatch(/^x \(of the specialised text: .+\)$/);
    await select(3, 3);
    await click('Pin…');
    expect(button(host, 'Pin').disabled).toBe(true);
    expect(host.querySelector('.cg-source [role=status]')?.textContent).toContain('choose others');
  });

  it('find the lines around those that only the specialised text has', () => {
    const same = { 10: 3, 11: 4, 20: 8 };
    expect(linesAround({ first: 5, last: 6 }, same)).toEqual({ first: 11, last: 20 });
    expect(linesAround({ first: 9, last: 9 }, same)).toEqual({ first: 20, last: 20 });
    expect(linesAround({ first: 1, last: 2 }, same)).toEqual({ first: 10, last: 10 });
    expect(linesAround({ first: 1, last: 2 }, {})).toBeNull();
  });

  it('map lines both ways', () => {
    const same = { 10: 3, 11: 4, 20: 3 };
    expect(shownLines({ first: 9, last: 12 }, same)).toEqual({ first: 3, last: 4 });
    expect(ownLines({ first: 3, last: 3 }, same)).toEqual({ first: 10, last: 20 });
    expect(ownLines({ first: 5, last: 6 }, same)).toBeNull();
    expect(shownLines({ first: 0, last: 0 }, null)).toBeNull();
  });
});
