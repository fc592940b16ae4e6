import { act } from 'preact/test-utils';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lineage } from '../src/run/layout';
import { mount, unmount } from '../src/run/mount';
import type { CandidateView, RunView } from '../src/schema';
import { button, sample } from './samples';

const [first] = sample('review').candidates;
const made = (id: string, parent_id: string | null) => ({ ...first, id, parent_id }) as CandidateView;
const drawn = (candidates: CandidateView[], current: string | null = null) =>
  lineage(candidates, current).map(node => [node.candidate.id, node.depth, node.lane]);

describe('the layout', () => {
  const family = [
    made('c1', null), made('c2', 'c1'), made('c3', 'c1'), made('c4', 'c2'), made('c5', 'c1'), made('c6', 'c4')
  ]; // prettier-ignore

  it('is a tree: each candidate under its parent, whenever it was made; the last child stays in its lane', () => {
    expect(drawn(family)).toEqual([
      ['c1', 0, 0], ['c2', 1, 1], ['c4', 2, 1], ['c6', 3, 1], ['c3', 1, 1], ['c5', 1, 0]
    ]); // prettier-ignore
  });

  it('has the way to the current kernel as its trunk; what grew from that one are branches', () => {
    expect(drawn(family, 'c4')).toEqual([
      ['c1', 0, 0], ['c3', 1, 1], ['c5', 1, 1], ['c2', 1, 0], ['c4', 2, 0], ['c6', 3, 1]
    ]); // prettier-ignore
    const trunk = lineage(family, 'c4').filter(node => node.trunk);
    expect(trunk.map(node => node.candidate.id)).toEqual(['c1', 'c2', 'c4']);
  });

  it('never draws an edge down a lane through a node', () => {
    let state = 1;
    const random = (below: number) => (state = (state * 48271) % 2147483647) % below;
    for (let run = 0; run < 50; run++) {
      const all = Array.from({ length: 12 }, (_, i) => made(`c${i}`, i === 0 ? null : `c${random(i)}`));
      const nodes = lineage(all, `c${random(12)}`);
      for (const { parent, row } of nodes) {
        const between = nodes.filter(each => parent && each.row > parent.row && each.row < row);
        const inLane = between.filter(each => each.lane === parent?.lane);
        expect(inLane.map(each => each.candidate.id)).toEqual([]);
      }
    }
  });

  it('loses none whose parent is unknown, itself, or later', () => {
    const odd = [made('c1', 'c0'), made('c2', 'c2'), made('c3', 'c4'), made('c4', 'c3')];
    expect(drawn(odd).map(([id]) => id)).toEqual(['c1', 'c2', 'c3', 'c4']);
  });
});

describe('the drawn lineage', () => {
  let host: HTMLElement;
  beforeEach(() => {
    host = document.createElement('div');
    document.body.append(host);
  });
  afterEach(() => {
    unmount(host);
    host.remove();
  });
  const show = (view: RunView) => act(() => mount(host, view, null));
  const item = (name: RegExp) => button(host, name);
  const press = (key: string) =>
    act(() => {
      const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
      document.activeElement?.dispatchEvent(event);
    });
  const focused = () => document.activeElement?.textContent.slice(0, 2);

  it('has a node and an edge to its parent for each candidate, by a shape for its verdict', async () => {
    await show(sample('review'));
    expect(host.querySelectorAll('.cg-edge')).toHaveLength(4);
    const shapes = [...host.querySelectorAll('.cg-node')].map(node => node.classList[1]);
    expect(shapes).toEqual([
      'cg-node-full', 'cg-node-square', 'cg-node-square', 'cg-node-ring', 'cg-node-ring'
    ]); // prettier-ignore
    expect(item(/^c4/).textContent).toContain('rejected');
  });

  it('says the same in words: verdict, time and what it is, and how it differs from its parent', async () => {
    await show({ ...sample('review'), best_id: 'c5' });
    expect(item(/^c5/).textContent).toBe(
      'c5 one warp group a row, unroll 2 best passed · 38.1 µs predicted · −47%, 47% faster than c1, made from c1'
    );
    expect(item(/^c5/).getAttribute('aria-level')).toBe('2');
    expect(item(/^c4/).textContent).not.toContain('%'); // Its parent has no time.
  });

  it('calls the fastest best, and the one accepted last current', async () => {
    await show({ ...sample('review'), best_id: 'c1', incumbent_id: 'c5' });
    const names = (name: RegExp) => item(name).querySelector('.cg-names')?.textContent.trim();
    expect(names(/^c1/)).toBe('best');
    expect(names(/^c5/)).toBe('current');
    expect(names(/^c2/)).toBeUndefined();
  });

  it('is one stop of the Tab key; arrows move along rows and edges, and only Enter or a click selects', async () => {
    await show(sample('review'));
    const stops = () => [...host.querySelectorAll('[role=treeitem][tabindex="0"]')];
    expect(stops().map(each => each.textContent.slice(0, 2))).toEqual(['c5']);
    item(/^c5/).focus();
    const seen = [];
    for (const key of ['ArrowUp', 'ArrowLeft', 'Home', 'ArrowRight', 'End', 'ArrowDown']) {
      await press(key);
      seen.push(focused());
    }
    expect(seen).toEqual(['c4', 'c3', 'c1', 'c2', 'c5', 'c5']);
    await press('ArrowUp');
    expect(item(/^c5/).getAttribute('aria-selected')).toBe('true');
    await act(() => (document.activeElement as HTMLElement).click());
    expect(item(/^c4/).getAttribute('aria-selected')).toBe('true');
    expect(host.querySelector('.cg-summary')?.textContent).toContain('masked tail');
  });

  it('says so where there is none', async () => {
    await show(sample('started'));
    expect(host.querySelector('.cg-lineage')?.textContent).toContain('the first one is being written');
  });
});
