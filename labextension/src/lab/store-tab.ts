import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { unmount } from '../run/mount';
import type { IQuery } from '../run/verbs';
import type { Changes, RunKey } from '../schema';
import { keyOf } from '../runs/words';
import { failureOf } from './behind';
import { cutegenIcon } from './icon';

export interface ISource {
  readonly changes: ISignal<unknown, Changes | null>;
  view(key: RunKey): Promise<unknown>;
  look(key: RunKey, query: IQuery): Promise<unknown>;
}

/** Runs in the main area, from the store: it needs no kernel, and follows what any process does with them. */
export abstract class StoreTab extends Widget {
  constructor(
    private readonly keys: readonly RunKey[],
    protected readonly server: ISource,
    protected readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('cg-page');
    this.title.icon = cutegenIcon;
    this.title.caption = keys.map(key => trans.__('%1 in %2', key.run_id, key.store)).join('\n');
    this.title.closable = true;
    this.node.tabIndex = -1;
    this.host.className = 'cg-page-run';
    this.note.className = 'cg-page-failed';
    this.note.setAttribute('role', 'alert');
    server.changes.connect(this.onChanges);
    void this.refresh();
  }

  /** Reads the runs again and shows them. */
  async refresh(): Promise<void> {
    const turn = ++this.turn;
    let runs: unknown[] = [];
    let failure = '';
    try {
      runs = await Promise.all(this.keys.map(key => this.server.view(key)));
    } catch (error) {
      failure = failureOf(error, this.trans);
    }
    if (turn !== this.turn || this.isDisposed) {
      return;
    }
    if (failure === '') {
      this.note.remove();
      this.show_(runs, this.host);
      this.node.append(this.host);
    } else if (!this.host.isConnected) {
      this.note.textContent = failure; // what was read before would stay
      this.node.append(this.note);
    }
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.server.changes.disconnect(this.onChanges);
    unmount(this.host);
    super.dispose();
  }

  protected override onActivateRequest(): void {
    if (!this.node.contains(document.activeElement)) {
      this.node.focus({ preventScroll: true });
    }
  }

  /** Shows the runs, in the order of their keys, in `host`. */
  protected abstract show_(runs: readonly unknown[], host: HTMLElement): void;

  private readonly onChanges = (_: unknown, changes: Changes | null): void => {
    const mine = this.keys.map(keyOf);
    if (changes !== null && (changes.changed?.some(each => mine.includes(keyOf(each))) ?? true)) {
      void this.refresh();
    }
  };

  private readonly host = document.createElement('div');
  private readonly note = document.createElement('p');
  private turn = 0;
}
