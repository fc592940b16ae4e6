import type { TranslationBundle } from '@jupyterlab/translation';
import type { IAway } from '../run/away';
import { mount } from '../run/mount';
import type { IBackend } from '../run/verbs';
import type { RunKey, RunView } from '../schema';
import { keyOf } from '../runs/words';
import { serverBehind } from './behind';
import { StoreTab, type ISource } from './store-tab';

/** A run in the main area. */
export class RunTab extends StoreTab {
  constructor(
    readonly key: RunKey,
    server: ISource,
    private readonly away: () => IAway,
    trans: TranslationBundle
  ) {
    super([key], server, trans);
    this.backend = serverBehind(query => server.look(key, query), trans);
    this.id = `cutegen-run-${keyOf(key)}`;
    this.title.label = key.run_id;
  }

  protected override show_([run]: readonly unknown[], host: HTMLElement): void {
    this.title.label = (run as RunView).title || this.key.run_id;
    mount(host, run, this.backend, false, this.away());
  }

  private readonly backend: IBackend;
}
