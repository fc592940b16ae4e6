import { act } from 'preact/test-utils';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Signal } from '@lumino/signaling';
import type { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { ArchiveView } from '../src/lab/archive';
import { serverBehind } from '../src/lab/behind';
import { ComparisonTab } from '../src/lab/comparisons';
import { makingKernel, notebookOf, resuming } from '../src/lab/notebook';
import { RunTab } from '../src/lab/run-tab';
import type { IQuery } from '../src/run/verbs';
import { RunServer } from '../src/runs/server';
import type { Changes, RunKey } from '../src/schema';
import { button, sample } from './samples';

const trans = nullTranslator.load('cutegen_lab');

class Socket {
  static opened: Socket[] = [];
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  closed = false;
  constructor(readonly url: string) {
    Socket.opened.push(this);
  }
  close(): void {
    this.closed = true;
    this.onclose?.();
  }
}

const CHANGES: Changes = { changed: null, running: 1, awaiting: [], machine: 'emulator' };

function settingsOf(fetch: (request: Request) => Promise<Response>): ServerConnection.ISettings {
  return {
    baseUrl: 'http://host/user/ana/',
    wsUrl: 'ws://host/user/ana/',
    token: 'secret',
    appendToken: true,
    init: {},
    fetch: fetch as typeof window.fetch,
    Request: globalThis.Request,
    Headers: globalThis.Headers,
    WebSocket: Socket as unknown as typeof WebSocket
  } as unknown as ServerConnection.ISettings;
}

async function settled(): Promise<void> {
  await act(async () => {
    await vi.advanceTimersByTimeAsync(0);
  });
}

beforeEach(() => {
  Socket.opened = [];
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

describe('the server', () => {
  it('is asked under the base URL, with what is wanted alone', async () => {
    const asked: Request[] = [];
    const server = new RunServer(
      settingsOf(request => {
        asked.push(request);
        return Promise.resolve(new Response('{"rows": []}'));
      })
    );
    await server.list({ q: 'a&b=c', status: '', trashed: false });
    await server.change({ store: 'x/.cutegen', run_id: 'r 1' }, { trashed: true });
    expect(asked.map(each => `${each.method} ${each.url}`)).toEqual([
      'GET http://host/user/ana/cutegen/runs?q=a%26b%3Dc&trashed=false',
      'PATCH http://host/user/ana/cutegen/run?store=x%2F.cutegen&id=r%201'
    ]);
    expect(await asked[1]?.text()).toBe('{"trashed":true}');
  });

  it('is asked what a view asks, of a run and of a file', async () => {
    const asked: Request[] = [];
    const server = new RunServer(
      settingsOf(request => {
        asked.push(request);
        return Promise.resolve(new Response('{"ptx": []}'));
      })
    );
    const query: IQuery = { query: 'machine_code', candidate_id: 'c1', general: true };
    expect(await server.look({ store: '.cutegen', run_id: 'r1' }, query)).toEqual({ ptx: [] });
    await server.lookInto('a/sent.cutegen', query);
    expect(asked.map(each => `${each.method} ${each.url}`)).toEqual([
      'POST http://host/user/ana/cutegen/run?store=.cutegen&id=r1',
      'POST http://host/user/ana/cutegen/archive?path=a%2Fsent.cutegen'
    ]);
    for (const each of asked) {
      expect(await each.json()).toEqual({ request_id: '', ...query });
    }
  });

  it('says what went wrong', async () => {
    const answers = [
      new Response('{"message": "no run x"}', { status: 409 }),
      new Response('<html>', { status: 404 })
    ];
    const server = new RunServer(settingsOf(() => Promise.resolve(answers.shift() ?? new Response(''))));
    await expect(server.view({ store: 's', run_id: 'x' })).rejects.toThrow('no run x');
    await expect(server.list({})).rejects.toMatchObject({ response: { status: 404 }, message: '' });
  });

  it('tells of changes, and connects again ever more slowly', () => {
    const server = new RunServer(settingsOf(() => Promise.reject(new Error('unasked'))));
    const heard: (Changes | null)[] = [];
    server.changes.connect((_, changes) => heard.push(changes));
    server.follow(2);
    expect(Socket.opened[0]?.url).toBe('ws://host/user/ana/cutegen/events?seconds=2&token=secret');
    Socket.opened[0]?.onmessage?.({ data: JSON.stringify(CHANGES) });
    expect(server.latest).toEqual(CHANGES);
    Socket.opened[0]?.onclose?.();
    expect(server.latest).toBeNull();
    vi.advanceTimersByTime(1000);
    expect(Socket.opened).toHaveLength(2);
    Socket.opened[1]?.onclose?.();
    vi.advanceTimersByTime(1000);
    expect(Socket.opened).toHaveLength(2);
    vi.advanceTimersByTime(1000);
    expect(Socket.opened).toHaveLength(3);
    expect(heard).toEqual([CHANGES, null, null]);
    server.dispose();
    expect(Socket.opened[2]?.closed).toBe(true);
    vi.advanceTimersByTime(100_000);
    expect(Socket.opened).toHaveLength(3);
  });
});

const KEY = { store: '.cutegen', run_id: 'r1' };

class Source {
  readonly changes = new Signal<this, Changes | null>(this);
  run: unknown = sample('review');
  readonly titles: Record<string, string> = {};
  reads = 0;
  view({ run_id }: RunKey): Promise<unknown> {
    this.reads += 1;
    return this.run instanceof Error
      ? Promise.reject(this.run)
      : Promise.resolve({ ...(this.run as object), title: this.titles[run_id] ?? '' });
  }
  answer: unknown = new Error('the process ended');
  asked: unknown[] = [];
  look(key: RunKey, query: IQuery): Promise<unknown> {
    this.asked.push({ ...key, ...query });
    return this.answer instanceof Error ? Promise.reject(this.answer) : Promise.resolve(this.answer);
  }
}

describe('a run in a tab', () => {
  const go = vi.fn();
  const away = () => ({ reason: 'answered in a notebook', label: 'Resume in a notebook', go });

  async function opened(source: Source): Promise<RunTab> {
    const tab = new RunTab(KEY, source, away, trans);
    document.body.append(tab.node);
    await settled();
    return tab;
  }

  it('shows verbs that do nothing there, says why, and leads to a notebook', async () => {
    const tab = await opened(new Source());
    const buttons = [...tab.node.querySelectorAll<HTMLButtonElement>('.cg-actions button')];
    expect(buttons[0]?.textContent).toBe('Resume in a notebook');
    expect(buttons.slice(1).every(each => each.disabled && each.title === 'answered in a notebook')).toBe(
      true
    );
    expect(buttons.length).toBeGreaterThan(3);
    buttons[0]?.click();
    expect(go).toHaveBeenCalledOnce();
    tab.dispose();
  });

  it('asks the server what a kernel would be asked, and takes no notes', async () => {
    const source = new Source();
    source.answer = {
      candidate_id: 'c5',
      workload: 'main',
      ptx: [{ text: 'ld.global.f32 %f1, [%rd1];', line: 1, stall: null }],
      sass: [],
      sass_note: ''
    };
    const tab = await opened(source);
    const click = async (name: string) => {
      button(tab.node, name).click();
      await settled();
    };
    await click('PTX');
    expect(tab.node.querySelector('.cg-code')?.textContent).toContain('ld.global.f32');
    source.answer = new Error('');
    await click('Profile');
    expect(tab.node.querySelector('.cg-tab-panel')?.textContent).toBe('The server did not answer.');
    source.answer = new Error('the process ended');
    await click('Layouts');
    expect(tab.node.querySelector('.cg-tab-panel')?.textContent).toBe('the process ended');
    expect(source.asked).toEqual([
      { ...KEY, query: 'machine_code', candidate_id: 'c5', general: true },
      { ...KEY, query: 'plots', candidate_id: 'c5' },
      { ...KEY, query: 'layouts', candidate_id: 'c5' }
    ]);
    expect(tab.node.querySelector('.cg-export')).not.toBeNull();
    expect(tab.node.querySelector('[data-verb]')).toBeNull();
    tab.dispose();
  });

  it('follows changes of its run, and of no other', async () => {
    const source = new Source();
    const tab = await opened(source);
    source.run = sample('done');
    source.changes.emit({ ...CHANGES, changed: [{ store: '.cutegen', run_id: 'other' }] });
    source.changes.emit(null);
    expect(source.reads).toBe(1);
    source.changes.emit({ ...CHANGES, changed: [KEY] });
    await settled();
    expect(tab.node.querySelector('.cg-status')?.textContent).toContain('Done');
    tab.dispose();
    source.changes.emit(CHANGES);
    expect(source.reads).toBe(2);
  });

  it('is called by its title, by its name where it has none', async () => {
    const source = new Source();
    const tab = await opened(source);
    expect(tab.title.label).toBe('r1');
    source.titles.r1 = 'the fast one';
    source.changes.emit(CHANGES);
    await settled();
    expect(tab.title.label).toBe('the fast one');
    tab.dispose();
  });

  it('says why it shows nothing, and keeps what it showed', async () => {
    const source = new Source();
    source.run = new Error('no such run');
    const tab = await opened(source);
    expect(tab.node.querySelector('[role=alert]')?.textContent).toBe('no such run');
    source.run = sample('review');
    source.changes.emit(CHANGES);
    await settled();
    expect(tab.node.querySelector('[role=alert]')).toBeNull();
    source.run = new Error('the server is gone');
    source.changes.emit(CHANGES);
    await settled();
    expect(tab.node.querySelector('.cg-root')).not.toBeNull();
    tab.dispose();
  });
});

describe('two runs in a tab', () => {
  const OTHER = { store: 'other/.cutegen', run_id: 'r2' };

  async function opened(source: Source, titles: [string, string], open = vi.fn()): Promise<ComparisonTab> {
    const [before, after] = titles;
    Object.assign(source.titles, { [KEY.run_id]: before, [OTHER.run_id]: after });
    const tab = new ComparisonTab({ ...KEY, title: before }, { ...OTHER, title: after }, source, open, trans);
    document.body.append(tab.node);
    await settled();
    return tab;
  }

  it('are called by their titles, by their names where these are the same', async () => {
    const named = await opened(new Source(), ['fast', 'slow']);
    expect(named.title.label).toBe('fast · slow');
    expect(named.title.caption).toBe('r1 in .cutegen\nr2 in other/.cutegen');
    expect(named.node.querySelector('table')?.getAttribute('aria-label')).toBe(
      'Numbers of fast c1 and slow c1'
    );
    const alike = await opened(new Source(), ['softmax', 'softmax']);
    expect(alike.title.label).toBe('r1 · r2');
    named.dispose();
    alike.dispose();
  });

  it('follow a change of title, and its removal', async () => {
    const source = new Source();
    const tab = await opened(source, ['fast', 'slow']);
    Object.assign(source.titles, { [KEY.run_id]: '', [OTHER.run_id]: 'renamed' });
    source.changes.emit({ ...CHANGES, changed: [OTHER] });
    await settled();
    expect(tab.title.label).toBe('softmax · renamed');
    expect(button(tab.node, 'renamed')).toBeTruthy();
    tab.dispose();
  });

  it('are opened and asked each for itself', async () => {
    const source = new Source();
    const open = vi.fn();
    const tab = await opened(source, ['fast', 'slow'], open);
    button(tab.node, 'slow').click();
    expect(open).toHaveBeenCalledWith(expect.objectContaining(OTHER));
    button(tab.node, 'Compare PTX').click();
    await settled();
    expect(source.asked).toEqual([
      expect.objectContaining({ ...KEY, query: 'machine_code' }),
      expect.objectContaining({ ...OTHER, query: 'machine_code' })
    ]);
    tab.dispose();
  });

  it('follow changes of both until the tab is closed', async () => {
    const source = new Source();
    const tab = await opened(source, ['fast', 'slow']);
    expect(source.reads).toBe(2);
    for (const key of [KEY, OTHER]) {
      source.changes.emit({ ...CHANGES, changed: [key] });
      await settled();
    }
    expect(source.reads).toBe(6);
    source.changes.emit({ ...CHANGES, changed: [{ ...OTHER, store: '.cutegen' }] });
    expect(source.reads).toBe(6);
    tab.dispose();
    source.changes.emit(CHANGES);
    expect(source.reads).toBe(6);
    expect(tab.node.querySelector('.cg-root')).toBeNull();
  });
});

describe('a run in a file', () => {
  it('asks the server, and says why it shows nothing', async () => {
    const asked = vi.fn(() => Promise.reject(new Error('read from sent.cutegen, to look at only')));
    const backend = serverBehind(asked, trans);
    const view = new ArchiveView(Promise.resolve(sample('done')), backend, trans);
    document.body.append(view.node);
    await settled();
    button(view.node, 'Layouts').click();
    await settled();
    await settled(); // the server's answer
    expect(view.node.querySelector('.cg-tab-panel')?.textContent).toBe(
      'read from sent.cutegen, to look at only'
    );
    expect(asked).toHaveBeenCalledOnce();
    expect(view.node.querySelector('[data-verb]')).toBeNull();
    view.dispose();
    const broken = new ArchiveView(Promise.reject(new Error('')), backend, trans);
    await settled();
    expect(broken.node.textContent).toBe('The server did not answer.');
    broken.dispose();
  });
});

describe('notebooks', () => {
  it('take a run up, and make a kernel of a file', () => {
    const kernel = { name: 'python3', display_name: 'Python 3' };
    const sources = (cells: ReturnType<typeof resuming>) =>
      notebookOf(cells, kernel).cells.map(each => each.source);
    expect(sources(resuming('soft-1'))).toEqual(['%load_ext cutegen_lab', '%cutegen resume soft-1']);
    expect(sources(makingKernel('mlp', 'def reference(x): ...\n\n'))).toEqual([
      '%load_ext cutegen_lab',
      '%%cutegen --name mlp\ndef reference(x): ...'
    ]);
  });
});
