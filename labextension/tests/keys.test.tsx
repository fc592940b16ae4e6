import { act } from 'preact/test-utils';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { COMMANDS, commandOf, currentKeys, DEFAULTS, leaveKeys } from '../src/run/keys';
import { mount } from '../src/run/mount';
import type { IAnswer } from '../src/run/verbs';
import { host } from './host';
import { button, sample } from './samples';

interface ISchema {
  properties: { keys: { default: Record<string, string>; properties: Record<string, unknown> } };
}

let sent: IAnswer[];

beforeEach(async () => {
  sent = [];
  const ask = (answer: IAnswer) => (sent.push(answer), Promise.resolve());
  await act(() => mount(host, sample('review'), { ask, look: () => Promise.reject(new Error('none')) }));
});

afterEach(() => {
  delete document.documentElement.dataset.cutegenKeys;
});

const press = (key: string, on: Element = host.querySelector('.cg-root') as Element) =>
  act(async () => {
    on.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve();
    }
  });
const listed = () =>
  Object.fromEntries<string | null | undefined>(
    [...host.querySelectorAll('.cg-keys dl > div')].map(row => [
      row.querySelector('dd')?.textContent ?? '',
      row.querySelector('kbd')?.textContent
    ])
  );

describe('keys', () => {
  it("are those of the extension's settings", () => {
    const file = resolve(import.meta.dirname, '../schema/keys.json');
    const { keys } = (JSON.parse(readFileSync(file, 'utf8')) as ISchema).properties;
    expect(keys.default).toEqual(DEFAULTS);
    expect(Object.keys(keys.properties)).toEqual(Object.keys(COMMANDS));
    expect(new Set(Object.values(DEFAULTS)).size).toBe(Object.keys(DEFAULTS).length);
  });

  it('are listed by ?, as they are set, and by a button', async () => {
    leaveKeys({ approve: 'y' });
    await press('?');
    expect(listed()[COMMANDS.approve]).toBe('y');
    expect(listed()[COMMANDS.reject]).toBe('r');
    await press('?');
    expect(host.querySelector('.cg-keys')).toBeNull();
    await act(() => button(host, 'Keys').click());
    expect(button(host, 'Keys').getAttribute('aria-expanded')).toBe('true');
    await act(() => button(host, 'Close').click());
    expect(host.querySelector('.cg-keys')).toBeNull();
  });

  it('do what the analyst gave them, also while the widget is open', async () => {
    leaveKeys({ approve: 'y' });
    await press('a');
    expect(sent).toEqual([]);
    await press('y');
    expect(sent.map(each => each.verb)).toEqual(['approve']);
  });

  it('are the defaults where nothing, or nonsense, is set', () => {
    expect(currentKeys()).toEqual(DEFAULTS);
    document.documentElement.dataset.cutegenKeys = '{';
    expect(currentKeys()).toEqual(DEFAULTS);
    leaveKeys({ approve: 7, reject: 'xx', edit: null, unknown: 'u' });
    expect(currentKeys()).toEqual(DEFAULTS);
    leaveKeys(null);
    expect(currentKeys()).toEqual(DEFAULTS);
  });

  it("are the analyst's where another command has the same by default", () => {
    leaveKeys({ next: 'a' });
    const pressed = (key: string) => commandOf(new KeyboardEvent('keydown', { key }), currentKeys());
    expect(pressed('a')).toBe('next');
    expect(pressed('A')).toBe('next');
    expect(pressed('j')).toBeNull();
  });

  it('compare the selected candidate with the one in focus, or with its parent', async () => {
    const heads = () => [...host.querySelectorAll('.cg-comparison thead th')].map(each => each.textContent);
    await press('c');
    expect(heads()).toEqual(['c1', 'c5', 'change']);
    await press('c', button(host, /^c4/));
    expect(heads()).toEqual(['c4', 'c5', 'change']);
  });
});
