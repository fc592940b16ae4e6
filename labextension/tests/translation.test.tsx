import { readdirSync, readFileSync } from 'node:fs';
import { Gettext } from '@jupyterlab/translation';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { StatusItem } from '../src/lab/status';
import { mount } from '../src/run/mount';
import { leaveWords, trans } from '../src/run/words';
import { Runs } from '../src/runs/list';
import type { RunRow } from '../src/schema';
import { host } from './host';
import { button, sample } from './samples';
import { askedByLab, askedByView } from './texts';

const FILE = '../cutegen_lab/locale/de_DE/LC_MESSAGES/cutegen_lab.json';
const { '': HEAD, ...CATALOGUE } = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, string[]> & {
  '': { domain: string; language: string; plural_forms: string };
};

interface ISchema {
  title: string;
  description: string;
  properties: Record<string, { title: string; description: string }>;
}

/** What JupyterLab's server translates of the settings, with the contexts that it asks for. */
function textsOfSettings(path: string): string[] {
  const { title, description, properties } = JSON.parse(readFileSync(path, 'utf8')) as ISchema;
  const within = (context: string, texts: string[]) => texts.map(text => `${context}\u0004${text}`);
  const inner = Object.values(properties).flatMap(each => [each.title, each.description]);
  return [...within('schema', [title, description]), ...within('settings', inner)];
}

const inFolder = (folder: string) => readdirSync(folder).map(name => `${folder}/${name}`);

afterEach(() => {
  delete document.documentElement.dataset.cutegenWords;
});

function german(): Gettext {
  const trans = new Gettext({ domain: 'cutegen_lab', locale: 'de_DE' });
  const { domain, language, plural_forms: pluralForms } = HEAD;
  trans.loadJSON({ ...CATALOGUE, '': { domain, language, pluralForms } }, domain);
  return trans;
}

describe('the German catalogue', () => {
  it('has every text of the extension, the run view and the settings, and no other', () => {
    const asked = [
      ...[...askedByLab(), ...askedByView()].map(each => each.one),
      ...inFolder('schema').flatMap(textsOfSettings)
    ];
    expect(Object.keys(CATALOGUE).sort()).toEqual([...new Set(asked)].sort());
  });

  it('has a form for each that is asked for', () => {
    for (const { one, many, call } of [...askedByLab(), ...askedByView()]) {
      expect(CATALOGUE[one ?? ''], call).toHaveLength(many === undefined ? 1 : 2);
    }
  });

  it('keeps the places that are filled in', () => {
    const places = (text: string) => (text.match(/%\d/g) ?? []).sort();
    for (const [text, translated] of Object.entries(CATALOGUE)) {
      for (const each of translated) {
        expect(places(each), text).toEqual(places(text));
      }
    }
  });

  it('is what the sidebar shows', async () => {
    const row = {
      store: 'a',
      run_id: 'b',
      title: 'softmax',
      status: 'review',
      best_us: null,
      speedup: null
    } as RunRow;
    const list = () =>
      Promise.resolve({
        rows: [
          {
            ...row,
            problem: 'softmax',
            outcome: '',
            gpu: 'H200',
            device: 'emulator',
            updated_at: 0
          }
        ],
        total: 1,
        trashed: 2,
        problems: [],
        gpus: [],
        stores: [],
        machine: '',
        writable: true
      });
    const server = { list, view: vi.fn(), change: vi.fn() };
    const nothing = vi.fn();
    await act(async () => {
      render(
        <Runs
          trans={german()}
          server={server}
          folder=""
          version={0}
          live={true}
          onOpen={nothing}
          onResume={nothing}
          onCompare={nothing}
          onNew={nothing}
        />,
        host
      );
      await Promise.resolve();
    });
    await vi.waitFor(() => expect(host.textContent).toContain('auf emulator'));
    expect(host.textContent).toContain('Neuer Lauf');
    expect(host.textContent).toContain('Wartet auf Sie');
    expect(host.textContent).toContain('Papierkorb (2)');
    expect(host.querySelector('[aria-label="Läufe suchen"]')).not.toBeNull();
  });

  it('is what the run view shows', async () => {
    leaveWords('de-DE', CATALOGUE);
    await act(() => mount(host, sample('review'), { ask: vi.fn(), look: vi.fn() }));
    expect(button(host, 'c5 annehmen').title).toBe(
      trans.__(
        'accept the candidate under review or another that passed (c1), and those of a scope (3 steps, within 5%, until slower)'
      )
    );
    expect(host.querySelector('.cg-summary')?.textContent).toContain('er ist 47% schneller als c1');
    expect(host.querySelector('[role=tab]')?.textContent).toBe('Beurteilung');
  });

  it('is what the status bar shows, with the right plural', () => {
    const status = new StatusItem(german(), vi.fn());
    const awaiting = (count: number) => {
      status.show_({
        changed: null,
        running: 0,
        awaiting: Array<RunRow>(count).fill({} as RunRow),
        machine: 'H200'
      });
      return status.node.textContent;
    };
    expect(awaiting(1)).toBe('CuTeGen: H200 · 1 wartet auf Sie');
    expect(awaiting(3)).toBe('CuTeGen: H200 · 3 warten auf Sie');
  });
});

describe('texts', () => {
  it('are literals, which tools find', () => {
    const asked = [...askedByLab(), ...askedByView()];
    expect(asked.filter(({ one, many }) => one === null || many === null).map(each => each.call)).toEqual([]);
  });

  it('of the run view are the same as JupyterLab would have them, in every number', () => {
    const gettext = german();
    leaveWords('de-DE', CATALOGUE);
    const values = ['a', 'b%1', 3, '100%'];
    for (const { one, many } of askedByView()) {
      if (typeof many !== 'string') {
        expect(trans.__(one ?? '', ...values)).toBe(gettext.__(one ?? '', ...values));
        continue;
      }
      for (const count of [0, 1, 2, 5, 21]) {
        const mine = trans._n(one ?? '', many, count, ...values);
        expect(mine).toBe(gettext._n(one ?? '', many, count, ...values));
      }
    }
  });
});
