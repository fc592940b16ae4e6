import { readdirSync, readFileSync } from 'node:fs';
import { Gettext } from '@jupyterlab/translation';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import ts from 'typescript';
import { describe, expect, it, vi } from 'vitest';
import { StatusItem } from '../src/lab/status';
import { Runs } from '../src/runs/list';
import type { RunRow } from '../src/schema';

const FILE = '../cutegen_lab/locale/de_DE/LC_MESSAGES/cutegen_lab.json';
const { '': HEAD, ...CATALOGUE } = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, string[]> & {
  '': { domain: string; language: string; plural_forms: string };
};

/** Texts of the calls `trans.__(text, …)` and `trans._n(one, many, …)` in a file, as JupyterLab's tools find them. */
function textsIn(path: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const [first] = node.arguments;
      if (['__', '_n'].includes(node.expression.name.text) && first && ts.isStringLiteralLike(first)) {
        found.push(first.text);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest));
  return found;
}

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

function german(): Gettext {
  const trans = new Gettext({ domain: 'cutegen_lab', locale: 'de_DE' });
  const { domain, language, plural_forms: pluralForms } = HEAD;
  trans.loadJSON({ ...CATALOGUE, '': { domain, language, pluralForms } }, domain);
  return trans;
}

describe('the German catalogue', () => {
  it('has every text of the extension and its settings, and no other', () => {
    const asked = [
      ...['src/lab', 'src/runs'].flatMap(inFolder).flatMap(textsIn),
      ...inFolder('schema').flatMap(textsOfSettings)
    ];
    expect(Object.keys(CATALOGUE).sort()).toEqual([...new Set(asked)].sort());
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
    const host = document.createElement('div');
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
        machine: ''
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
    render(null, host);
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
