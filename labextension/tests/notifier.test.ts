import { afterEach, describe, expect, it } from 'vitest';
import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { Notifier } from '../src/lab/notifier';
import type { Changes, RunRow } from '../src/schema';

const row = { store: '', run_id: 'softmax-0001', title: 'softmax', notebook: 'softmax.ipynb' } as RunRow;
const changes = (...awaiting: RunRow[]): Changes => ({
  changed: null,
  running: 1,
  awaiting,
  machine: 'H200'
});
const told = () => Notification.manager.notifications.map(each => each.message);

/** A notifier to which `row` begins to wait; `inFront` says whether its notebook is in front. */
function waiting(inFront: () => boolean): Notifier {
  const notifier = new Notifier(nullTranslator.load('cutegen_lab'), () => undefined, inFront);
  notifier.hear(changes());
  notifier.hear(changes(row));
  return notifier;
}

afterEach(() => Notification.dismiss());

describe('a notification', () => {
  it('tells of a run that begins to wait, until it is answered', () => {
    const notifier = waiting(() => false);
    expect(told()).toEqual(['softmax awaits your review.']);
    notifier.hear(changes());
    expect(told()).toEqual([]);
  });

  it('is taken back when its notebook comes to the front, and does not come again', () => {
    let inFront = false;
    const notifier = waiting(() => inFront);
    notifier.look();
    expect(told()).toHaveLength(1);
    inFront = true;
    notifier.look();
    expect(told()).toEqual([]);
    inFront = false;
    notifier.hear(changes(row));
    expect(told()).toEqual([]);
  });

  it('is not made of a notebook that is in front', () => {
    waiting(() => true);
    expect(told()).toEqual([]);
  });
});
