import { act } from 'preact/test-utils';
import { describe, expect, it } from 'vitest';
import { Requests } from '../src/requests';
import widget from '../src/widget';
import { button, sample } from './samples';

type Listener = (content?: unknown) => void;

/** The part of an anywidget model the widget uses, with the kernel's end in the test's hands. */
class Model {
  readonly sent: Record<string, unknown>[] = [];
  readonly listeners = new Map<string, Set<Listener>>();
  view: unknown = sample('review');

  get(): unknown {
    return this.view;
  }
  on(name: string, listener: Listener): void {
    this.listeners.set(name, (this.listeners.get(name) ?? new Set()).add(listener));
  }
  off(name: string, listener: Listener): void {
    this.listeners.get(name)?.delete(listener);
  }
  send(content: Record<string, unknown>): void {
    this.sent.push(content);
  }
  emit(name: string, content?: unknown): void {
    this.listeners.get(name)?.forEach(listener => listener(content));
  }
  get listening(): number {
    return [...this.listeners.values()].reduce((sum, each) => sum + each.size, 0);
  }
}

type Model_ = ConstructorParameters<typeof Requests>[0];

function start(model: Model): { el: HTMLElement; stop: () => void } {
  const el = document.createElement('div');
  let stop = (): void => undefined;
  void act(() => {
    stop = widget.render({ model, el } as unknown as Parameters<typeof widget.render>[0]);
  });
  return { el, stop };
}

describe('widget', () => {
  it('sends an answer with every field of the message, and follows the view', async () => {
    const model = new Model();
    const { el } = start(model);
    await act(() => button(el, 'Approve c5').click());
    const message = model.sent[0];
    expect(message).toMatchObject({ verb: 'approve', candidate_id: 'c5', text: '', target_id: null });
    expect(typeof message?.request_id).toBe('string');
    model.view = sample('done');
    await act(() => model.emit('change:view'));
    expect(el.querySelector('[role=status]')?.textContent).toContain('Done');
  });

  it('lets go of everything when it is closed', () => {
    const model = new Model();
    const { el, stop } = start(model);
    expect(model.listening).toBe(3); // The view, its rest, and replies.
    stop();
    expect(model.listening).toBe(0);
    expect(el.childElementCount).toBe(0);
  });
});

describe('requests', () => {
  it('matches replies with questions, in any order, and ignores strangers', async () => {
    const model = new Model();
    const requests = new Requests(model as unknown as Model_);
    const first = requests.ask({ verb: 'stop', candidate_id: null });
    const second = requests.ask({ verb: 'retry', candidate_id: 'c1' });
    const [a, b] = model.sent.map(each => each.request_id);
    expect(a).not.toBe(b);
    model.emit('msg:custom', null);
    model.emit('msg:custom', { request_id: 'stranger', ok: false, error: 'no' });
    model.emit('msg:custom', { request_id: b, ok: false, error: 'not at review' });
    model.emit('msg:custom', { request_id: a, ok: true, error: '' });
    await expect(first).resolves.toBeUndefined();
    await expect(second).rejects.toThrow('not at review');
  });

  it('fails what is waiting when it is disposed, and whatever comes after', async () => {
    const requests = new Requests(new Model() as unknown as Model_);
    const waiting = requests.ask({ verb: 'stop', candidate_id: null });
    requests.dispose();
    await expect(waiting).rejects.toThrow('closed before the kernel answered');
    await expect(requests.ask({ verb: 'stop', candidate_id: null })).rejects.toThrow('closed');
    expect(requests.isDisposed).toBe(true);
  });
});
