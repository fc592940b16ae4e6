import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import type { IAway } from '../run/away';
import { mount, unmount } from '../run/mount';
import type { IBackend, IQuery } from '../run/verbs';
import type { Changes, RunKey } from '../schema';
import { keyOf } from '../runs/words';
import { failureOf, serverBehind } from './behind';

interface ISource {
  readonly changes: ISignal<unknown, Changes | null>;
  view(key: RunKey): Promise<unknown>;
  look(key: RunKey, query: IQuery): Promise<unknown>;
}

/** A run in the main area, from the store: it needs no kernel, and follows what any process does with the run. */
export class RunTab extends Widget {
  constructor(
    readonly key: RunKey,
    private readonly server: ISource,
    private readonly away: () => IAway,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.backend = serverBehind(query => server.look(key, query), trans);
    this.id = `cutegen-run-${keyOf(key)}`;
    this.addClass('cg-page');
    this.title.label = key.run_id;
    this.title.caption = trans.__('%1 in %2', key.run_id, key.store);
    this.title.closable = true;
    this.node.tabIndex = -1;
    this.host.className = 'cg-page-run';
    this.note.className = 'cg-page-failed';
    this.note.setAttribute('role', 'alert');
    server.changes.connect(this.onChanges);
    void this.refresh();
  }

  /** Reads the run again and shows it. */
  async refresh(): Promise<void> {
    const turn = ++this.turn;
    let data: unknown = null;
    let failure = '';
    try {
      data = await this.server.view(this.key);
    } catch (error) {
      failure = failureOf(error, this.trans);
    }
    if (turn !== this.turn || this.isDisposed) {
      return;
    }
    if (failure === '') {
      this.note.remove();
      mount(this.host, data, this.backend, false, this.away());
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

  private readonly onChanges = (_: unknown, changes: Changes | null): void => {
    if (changes !== null && (changes.changed?.some(each => keyOf(each) === keyOf(this.key)) ?? true)) {
      void this.refresh();
    }
  };

  private readonly backend: IBackend;
  private readonly host = document.createElement('div');
  private readonly note = document.createElement('p');
  private turn = 0;
}
