import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { keyOf } from '../runs/words';
import type { Changes, RunRow } from '../schema';

/** Tells once of each run that begins to need an answer; takes that back when it is answered, or in front. */
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
    this.takeBack(row => !waiting.has(keyOf(row)));
    for (const [key, row] of waiting) {
      // What waited before this page was opened is in the status bar.
      if (this.enabled && this.known !== null && !this.known.has(key) && !this.isSeen(row)) {
        const actions = [
          { label: this.trans.__('Go there'), displayType: 'accent' as const, callback: () => this.go(row) }
        ];
        const text = this.trans.__('%1 awaits your review.', row.title);
        this.told.set(Notification.warning(text, { autoClose: false, actions }), row);
      }
    }
    this.known = new Set(waiting.keys());
  }

  /** Takes back what is told of runs that came to the front meanwhile. */
  look(): void {
    this.takeBack(this.isSeen);
  }

  private takeBack(isOver: (row: RunRow) => boolean): void {
    for (const [id, row] of this.told) {
      if (isOver(row)) {
        this.told.delete(id);
        Notification.dismiss(id);
      }
    }
  }

  private known: Set<string> | null = null;
  private readonly told = new Map<string, RunRow>();
}
