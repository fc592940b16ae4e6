import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, describe, expect, it } from 'vitest';
import { TABS, Tabs, type ITab } from '../src/run/tabs';
import { host } from './host';
import { button, sample } from './samples';

let chosen: string[];

beforeEach(() => {
  chosen = [];
});

const named = (id: string): ITab => ({ id, label: id, Panel: ({ candidate }) => `${id} of ${candidate.id}` });

async function show(tabs: readonly ITab[], selectedId = '') {
  const view = sample('review');
  const candidate = view.candidates[0];
  if (candidate === undefined) {
    throw new Error('the sample has no candidate');
  }
  const onSelect = (id: string) => chosen.push(id);
  const unused = { parent: null, ask: null, look: null, compared: null, onCompare: () => undefined };
  const given = { view, candidate, selectedId, onSelect, tabs, ...unused };
  await act(() => render(<Tabs {...given} />, host));
}

const press = (key: string) =>
  host
    .querySelector('[role=tab][aria-selected=true]')
    ?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));

describe('tabs', () => {
  it('have ids of their own', () => {
    expect(new Set(TABS.map(tab => tab.id)).size).toBe(TABS.length);
  });

  it('show the selected panel, the first where none is, and are tied to it', async () => {
    await show(['one', 'two'].map(named));
    const panel = () => host.querySelector('[role=tabpanel]');
    expect(panel()?.textContent).toBe('one of c1');
    await show(['one', 'two'].map(named), 'two');
    expect(panel()?.textContent).toBe('two of c1');
    const selected = button(host, 'two');
    expect(selected.getAttribute('aria-selected')).toBe('true');
    expect(panel()?.getAttribute('aria-labelledby')).toBe(selected.id);
    expect(selected.getAttribute('aria-controls')).toBe(panel()?.id);
  });

  it('are chosen by a click, and by the arrow keys, Home and End', async () => {
    await show(['one', 'two', 'three'].map(named), 'one');
    button(host, 'two').click();
    for (const key of ['ArrowRight', 'ArrowLeft', 'End', 'Home', 'x']) {
      press(key);
    }
    expect(chosen).toEqual(['two', 'two', 'three', 'three', 'one']);
    expect(document.activeElement).toBe(button(host, 'one'));
  });

  it('have no bar where there is one only', async () => {
    await show([named('one')]);
    expect(host.textContent).toBe('one of c1');
    expect(host.querySelector('[role=tablist]')).toBeNull();
  });
});
