import { act } from 'preact/test-utils';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Signal } from '@lumino/signaling';
import type { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { makingKernel, notebookOf, resuming } from '../src/lab/notebook';
import { RunTab } from '../src/lab/run-tab';
import { RunServer } from '../src/runs/server';
import type { Changes } from '../src/schema';
import { sample } from './samples';

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

describe('a run in a tab', () => {
  const KEY = { store: '.cutegen', run_id: 'r1' };
  const go = vi.fn();
  const away = () => ({ reason: 'answered in a notebook', label: 'Resume in a notebook', go });

  class Source {
    readonly changes = new Signal<this, Changes | null>(this);
    run: unknown = sample('review');
    reads = 0;
    view(): Promise<unknown> {
      this.reads += 1;
      return this.run instanceof Error ? Promise.reject(this.run) : Promise.resolve(this.run);
    }
  }

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
