import { openSearchPanel } from '@codemirror/search';
import { act } from 'preact/test-utils';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { wordsPlugin } from '../src/lab/words';
import { mount } from '../src/run/mount';
import { leaveWords, trans } from '../src/run/words';
import { kernelFor } from './disguise';
import { host } from './host';
import { button, sample, text } from './samples';
import { askedByView } from './texts';

const page = document.documentElement;

afterEach(() => {
  delete page.dataset.cutegenWords;
});

async function settled(change: () => unknown): Promise<void> {
  await act(async () => {
    change();
    for (let turn = 0; turn < 9; turn++) {
      await Promise.resolve();
    }
  });
}

const show = (...given: Parameters<typeof mount> extends [unknown, ...infer Rest] ? Rest : never) =>
  settled(() => mount(host, ...given));

describe('words on the page', () => {
  it.each([
    '{',
    'null',
    '7',
    '[]',
    '{}',
    '{"language":"de"}',
    '{"language":"de","texts":null}',
    '{"language":"de","texts":"Review"}',
    '{"language":"de","texts":{"Review":"x"}}',
    '{"language":"de","texts":{"Review":[]}}',
    '{"language":"de","texts":{"Review":[7]}}',
    '{"language":"de","texts":{"Review":["x",null]}}',
    '{"language":"de","texts":{"Review":{"0":"x"}}}',
    '{"language":7,"texts":{"Review":["x"]}}',
    '{"language":"no language","texts":{"Review":["x"]}}',
    '{"texts":{"Review":["x"]}}'
  ])('that are none are ignored: %s', async left => {
    page.dataset.cutegenWords = left;
    expect(trans.__('Review')).toBe('Review');
    expect(trans._n('%1 register', '%1 registers', 2)).toBe('2 registers');
    await show(sample('review'), null);
    expect(button(host, 'Review').getAttribute('role')).toBe('tab');
  });

  it('are taken one by one, and no text is a name of an object', () => {
    leaveWords('de', { '': { plural_forms: 'x' }, Review: ['Urteil'], Compare: 'x', Profile: [1] });
    expect(['Review', 'Compare', 'Profile', 'constructor', '__proto__'].map(each => trans.__(each))).toEqual([
      ...['Urteil', 'Compare', 'Profile', 'constructor', '__proto__']
    ]);
    leaveWords('de', null);
    expect(trans.__('Review')).toBe('Review');
  });

  it('are shown as text, whatever they say', async () => {
    const hostile = (one: string) =>
      `<img src=x onerror="globalThis.pwned=1">${(one.match(/%\d+/g) ?? []).join(' ')} $ %9`;
    leaveWords('de', Object.fromEntries(askedByView().map(({ one }) => [one, [hostile(one ?? '')]])));
    await show(sample('review'), kernelFor(new Set()));
    await settled(() => host.querySelector<HTMLElement>('[data-verb=edit]')?.click());
    await settled(() => openSearchPanel(text(host, hostile('%1').replace('%1', 'c5'))));
    for (const tab of ['compare', 'profile', 'layouts']) {
      await settled(() => host.querySelector<HTMLElement>(`[data-tab=${tab}]`)?.click());
      expect(host.textContent).toContain('<img src=x');
      expect(host.querySelector('img')).toBeNull();
    }
    expect((globalThis as Record<string, unknown>).pwned).toBeUndefined();
  });

  it('are filled in as JupyterLab fills its own', () => {
    expect(trans.__('%2 and %1 and %1', 'a%2', 'b')).toBe('b and a%2 and a%2');
    expect(trans.__('%1 is 100%% of %2', 3)).toBe('3 is 100% of %2');
    expect(trans._n('%1 warp at %2', '%1 warps at %2', 1, 'x')).toBe('1 warp at x');
  });

  it.each([
    ['de', ['one', 'many'], ['many', 'one', 'many', 'many', 'many']],
    ['fr', ['one', 'many'], ['one', 'one', 'many', 'many', 'many']],
    ['ja', ['all'], ['all', 'all', 'all', 'all', 'all']],
    ['ru', ['one', 'few', 'many'], ['many', 'one', 'few', 'many', 'one']],
    ['cs', ['one', 'few', 'other'], ['other', 'one', 'few', 'other', 'other']]
  ])('have the form of each number in %s', (language, forms, expected) => {
    leaveWords(language, { '%1 thing': forms });
    expect([0, 1, 2, 5, 21].map(count => trans._n('%1 thing', '%1 things', count))).toEqual(expected);
  });
});

describe("JupyterLab's extension", () => {
  const start = (languageCode: string, fetch: unknown) =>
    (wordsPlugin.activate as (...given: unknown[]) => void)(
      { serviceManager: {} },
      { languageCode },
      { fetch },
      null
    );
  const left = () => page.dataset.cutegenWords;

  it('leaves its own catalogue of the language, from where the translator has it', async () => {
    const pack = {
      message: '',
      data: { cutegen_lab: { Review: ['Urteil'] }, jupyterlab: { Review: ['x'] } }
    };
    const fetch = vi.fn(() => Promise.resolve(pack));
    start('de-DE', fetch);
    await vi.waitFor(() => expect(trans.__('Review')).toBe('Urteil'));
    expect(fetch).toHaveBeenCalledWith({ language: 'de_DE' });
  });

  it('asks for nothing in English', () => {
    const fetch = vi.fn();
    start('en', fetch);
    expect(fetch).not.toHaveBeenCalled();
    expect(left()).toBeUndefined();
  });

  it.each([() => Promise.resolve({ message: 'none', data: {} }), () => Promise.reject(new Error('gone'))])(
    'stays English where there is none',
    async fetch => {
      const warned = vi.spyOn(console, 'warn').mockReturnValue(undefined);
      start('fr-FR', fetch);
      await vi.waitFor(() => expect(left() ?? warned.mock.calls[0]?.[0]).toBeTruthy());
      expect(trans.__('Review')).toBe('Review');
    }
  );
});
