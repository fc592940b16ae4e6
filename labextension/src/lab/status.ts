import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { keyOf } from '../runs/words';
import type { Changes, RunRow } from '../schema';

/** The device, and how many runs are at work or need an answer; a button that shows them. */
export class StatusItem extends Widget {
  constructor(
    private readonly trans: TranslationBundle,
    onClick: () => void
  ) {
    super();
    this.addClass('cg-statusbar');
    this.button = document.createElement('button');
    this.button.type = 'button';
    this.button.addEventListener('click', onClick);
    this.node.append(this.button);
    this.show_(null);
  }

  /** Shows what the server said last; null where it says nothing. */
  show_(changes: Changes | null): void {
    const { trans } = this;
    const parts = changes ? [`CuTeGen: ${changes.machine}`] : [trans.__('CuTeGen: not connected')];
    if (changes?.running) {
      parts.push(trans.__('%1 running', changes.running));
    }
    const waiting = changes?.awaiting.length ?? 0;
    if (waiting) {
      parts.push(waiting === 1 ? trans.__('1 awaits you') : trans.__('%1 await you', waiting));
    }
    this.button.textContent = parts.join(' · ');
    this.button.title = trans.__('Show the runs');
    this.button.classList.toggle('cg-statusbar-waits', waiting > 0);
  }

  private readonly button: HTMLButtonElement;
}

/** Tells once of each run that begins to need an answer, and takes that back when it has one. */
export class Notifier {
  constructor(
    private readonly trans: TranslationBundle,
    private readonly go: (row: RunRow) => void,
    private readonly isSeen: (row: RunRow) => boolean
  ) {}

  enabled = true;

  hear(changes: Changes | null): void {
    if (changes === null) {
      return;
    }
    const waiting = new Map(changes.awaiting.map(row => [keyOf(row), row]));
    for (const [key, id] of this.told) {
      if (!waiting.has(key)) {
        this.told.delete(key);
        Notification.dismiss(id);
      }
    }
    for (const [key, row] of waiting) {
      // What waited before this page was opened is in the status bar.
      if (this.enabled && this.known !== null && !this.known.has(key) && !this.isSeen(row)) {
        const actions = [
          { label: this.trans.__('Go there'), displayType: 'accent' as const, callback: () => this.go(row) }
        ];
        const text = this.trans.__('%1 awaits your review.', row.title);
        this.told.set(key, Notification.warning(text, { autoClose: false, actions }));
      }
    }
    this.known = new Set(waiting.keys());
  }

  private known: Set<string> | null = null;
  private readonly told = new Map<string, string>();
}
