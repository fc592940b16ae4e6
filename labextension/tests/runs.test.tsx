import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { nullTranslator } from '@jupyterlab/translation';
import { Runs } from '../src/runs/list';
import type { IListQuery, IRunServer } from '../src/runs/server';
import { ago, bestOf, standingOf } from '../src/runs/words';
import type { RunKey, RunList, RunRow } from '../src/schema';
import { host } from './host';

const trans = nullTranslator.load('cutegen_lab');

function rowOf(run_id: string, given: Partial<RunRow> = {}): RunRow {
  return {
    store: '.cutegen',
    run_id,
    problem: 'softmax',
    title: run_id,
    status: 'done',
    step: 'done',
    outcome: 'accepted',
    created_at: 0,
    updated_at: 1000,
    candidates: 2,
    accepted: 1,
    gpu: 'H200',
    device: 'emulator',
    best_id: 'c2',
    best_us: 4,
    best_kind: 'predicted',
    speedup: 2.5,
    over: 'c1',
    trashed: false,
    driver: '',
    notebook: '',
    ...given
  };
}

/** Keeps rows as the server does, and what was asked. */
class Server implements IRunServer {
  rows = [rowOf('first'), rowOf('second', { status: 'review', step: 'review', outcome: '' })];
  asked: IListQuery[] = [];
  changed: [string, object][] = [];
  failure: Error | null = null;
  writable = true;

  list(query: IListQuery): Promise<RunList> {
    this.asked.push(query);
    if (this.failure) {
      return Promise.reject(this.failure);
    }
    const fit = this.rows.filter(
      row => row.trashed === (query.trashed ?? false) && row.title.includes(query.q ?? '')
    );
    return Promise.resolve({
      rows: fit.slice(0, query.limit),
      total: fit.length,
      trashed: this.rows.filter(row => row.trashed).length,
      problems: ['softmax'],
      gpus: ['H200'],
      stores: [],
      machine: 'emulator',
      writable: this.writable
    });
  }
  view(): Promise<unknown> {
    return Promise.resolve({});
  }
  change(key: RunKey, change: { title?: string; trashed?: boolean }): Promise<RunRow> {
    this.changed.push([key.run_id, change]);
    const found = this.rows.find(row => row.run_id === key.run_id);
    if (found === undefined) {
      return Promise.reject(new Error('no such run'));
    }
    Object.assign(found, change.title === '' ? { title: found.problem } : change);
    return Promise.resolve(found);
  }
}

let server: Server;
const actions = { onOpen: vi.fn(), onResume: vi.fn(), onCompare: vi.fn(), onNew: vi.fn() };

async function draw(props: { version?: number; live?: boolean; folder?: string } = {}): Promise<void> {
  await act(async () => {
    render(
      <Runs trans={trans} server={server} folder="" version={0} live={true} {...props} {...actions} />,
      host
    );
    await Promise.resolve();
  });
  await settled();
}

async function settled(): Promise<void> {
  await act(() => new Promise(resolve => setTimeout(resolve, 0)));
}

async function click(name: string): Promise<void> {
  const found = [...host.querySelectorAll('button')].find(
    each => (each.getAttribute('aria-label') ?? each.textContent).trim() === name
  );
  if (found === undefined) {
    throw new Error(`no button ${name} in ${host.textContent}`);
  }
  await act(() => found.click());
  await settled();
}

async function press(element: Element | null | undefined, key: string): Promise<void> {
  await act(
    () => void element?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
  );
  await settled();
}

const titles = () => [...host.querySelectorAll('.cg-run-title')].map(each => each.textContent);
const open = (at: number) => host.querySelectorAll<HTMLElement>('.cg-run-open')[at];

beforeEach(() => {
  server = new Server();
});
afterEach(() => {
  Object.values(actions).forEach(each => each.mockReset());
});

describe('words', () => {
  it('say how a run stands', () => {
    expect(standingOf(rowOf('a'), trans).word).toBe('Done · accepted');
    expect(standingOf(rowOf('a', { outcome: 'nothing_accepted' }), trans).word).toBe(
      'Done · nothing accepted'
    );
    expect(standingOf(rowOf('a', { status: 'interrupted', step: 'check' }), trans).word).toBe(
      'Interrupted · at check'
    );
    expect(standingOf(rowOf('a', { status: 'running', step: 'time' }), trans).word).toBe('Running · time');
    const marks = (['running', 'review', 'interrupted', 'done'] as const).map(
      status => standingOf(rowOf('a', { status }), trans).mark
    );
    expect(new Set(marks).size).toBe(4);
  });

  it('say the best time, and whether it was predicted', () => {
    expect(bestOf(rowOf('a'), trans)).toBe('2.5× c1 (predicted)');
    expect(bestOf(rowOf('a', { best_kind: 'measured', over: 'eager', speedup: 1.23456 }), trans)).toBe(
      '1.23× eager'
    );
    expect(bestOf(rowOf('a', { speedup: null, over: '' }), trans)).toBe('4 µs (predicted)');
    expect(bestOf(rowOf('a', { speedup: null, over: '', best_us: null }), trans)).toBe('');
  });

  it('say how long ago', () => {
    const at = (seconds: number) => ago(1000, (1000 + seconds) * 1000, 'en');
    expect([at(3), at(200), at(7300), at(90_000)]).toEqual(['now', '3 min. ago', '2 hr. ago', 'yesterday']);
    expect(at(-5)).toBe('now'); // the server's clock may be ahead
  });
});

describe('the list of runs', () => {
  it('shows runs, and text of others as text', async () => {
    server.rows.push(rowOf('evil', { title: '<img src=x onerror=alert(1)>' }));
    await draw();
    expect(titles()).toEqual(['first', 'second', '<img src=x onerror=alert(1)>']);
    expect(host.querySelector('img')).toBeNull();
    expect(host.querySelector('[data-lm-suppress-shortcuts]')).toBeNull(); // those of JupyterLab work there
    expect(host.textContent).toContain('Awaits you');
  });

  it('asks again after a change, and shows the last answer only', async () => {
    await draw();
    server.rows.pop();
    await draw({ version: 1 });
    expect(titles()).toEqual(['first']);
    const answers: ((list: RunList) => void)[] = [];
    const whole = await server.list({});
    server.list = () => new Promise(resolve => answers.push(resolve));
    await draw({ version: 2 });
    await draw({ version: 3 });
    await act(() => answers[1]?.({ ...whole, rows: [rowOf('new')] }));
    await act(() => answers[0]?.({ ...whole, rows: [rowOf('old')] }));
    await settled();
    expect(titles()).toEqual(['new']);
  });

  it('puts a run in the trash and takes it out again', async () => {
    await draw();
    open(0)?.focus();
    await click('Trash (first)');
    expect(titles()).toEqual(['second']);
    expect(host.querySelector('footer [role=status]')?.textContent).toBe('first is in the trash.');
    expect(document.activeElement).toBe(open(0));
    await click('Undo');
    expect(titles()).toEqual(['first', 'second']);
    expect(server.changed).toEqual([
      ['first', { trashed: true }],
      ['first', { trashed: false }]
    ]);
  });

  it('renames by keyboard, and takes that back', async () => {
    await draw();
    await press(open(0), 'F2');
    const input = host.querySelector<HTMLInputElement>('input.cg-rename');
    expect(document.activeElement).toBe(input);
    await act(() => {
      if (input) {
        input.value = 'mine';
        input.dispatchEvent(new InputEvent('input', { bubbles: true }));
      }
    });
    await press(input, 'Enter');
    expect(titles()).toEqual(['mine', 'second']);
    await click('Undo');
    expect(titles()).toEqual(['first', 'second']);
    await press(open(0), 'F2');
    await press(host.querySelector('input.cg-rename'), 'Escape');
    expect(server.changed).toHaveLength(2);
  });

  it('moves with arrows, and Delete puts a run in the trash', async () => {
    await draw();
    open(0)?.focus();
    await press(open(0), 'ArrowDown');
    expect(document.activeElement).toBe(open(1));
    await press(open(1), 'ArrowDown');
    expect(document.activeElement).toBe(open(1));
    await press(open(1), 'Delete');
    expect(titles()).toEqual(['first']);
  });

  it('opens, resumes and compares', async () => {
    await draw();
    await act(() => open(0)?.click());
    expect(actions.onOpen).toHaveBeenCalledWith(server.rows[0]);
    await click('Resume (first)');
    expect(actions.onResume).toHaveBeenCalledWith(server.rows[0]);
    await click('Compare… (first)');
    await click('Compare with first (second)');
    expect(actions.onCompare).toHaveBeenCalledWith(server.rows[0], server.rows[1]);
    await click('Compare… (first)');
    await act(() => open(1)?.click());
    expect(actions.onCompare).toHaveBeenCalledTimes(2);
    expect(actions.onOpen).toHaveBeenCalledTimes(1);
    await click('Compare… (first)');
    await click('Do not compare (first)');
    expect(actions.onCompare).toHaveBeenCalledTimes(2);
  });

  it('offers who may only read nothing that changes a run', async () => {
    server.writable = false;
    await draw();
    const labels = [...host.querySelectorAll('.cg-run-action')].map(each => each.getAttribute('aria-label'));
    expect(labels).toEqual(['Compare… (first)', 'Compare… (second)']);
    await press(open(0), 'F2');
    await press(open(0), 'Delete');
    expect(host.querySelector('.cg-rename')).toBeNull();
    expect(server.changed).toEqual([]);
  });

  it('searches, and says that nothing fits', async () => {
    await draw();
    const search = host.querySelector<HTMLInputElement>('input[type=search]');
    await act(() => {
      if (search) {
        search.value = 'xyz';
        search.dispatchEvent(new InputEvent('input', { bubbles: true }));
      }
    });
    await settled();
    expect(server.asked.at(-1)?.q).toBe('xyz');
    expect(host.textContent).toContain('No run fits.');
    await click('Show all');
    expect(titles()).toHaveLength(2);
  });

  it('says what to do where there is no run', async () => {
    server.rows = [];
    await draw({ folder: 'work' });
    expect(host.textContent).toContain('No runs yet below work.');
    await click('New run');
    expect(actions.onNew).toHaveBeenCalled();
  });

  it('says what is wrong, keeps what it had, and tries again', async () => {
    await draw();
    server.failure = new Error('the disk is gone');
    await draw({ version: 1 });
    expect(host.querySelector('[role=alert]')?.textContent).toContain('the disk is gone');
    expect(titles()).toHaveLength(2);
    server.failure = null;
    await click('Try again');
    expect(host.querySelector('[role=alert]')).toBeNull();
    server.failure = Object.assign(new Error(''), { response: { status: 404 } });
    await draw({ version: 2 });
    expect(host.textContent).toContain('jupyter server extension enable cutegen_lab.server');
  });

  it('says that changes are not heard of', async () => {
    await draw({ live: false });
    expect(host.textContent).toContain('Changes are not heard of');
    await draw({ live: true });
    expect(host.textContent).not.toContain('Changes are not heard of');
  });
});
