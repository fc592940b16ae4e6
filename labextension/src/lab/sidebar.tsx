import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { render } from 'preact';
import { Runs } from '../runs/list';
import type { RunServer } from '../runs/server';
import type { RunRow } from '../schema';
import { cutegenIcon } from './icon';

/** What the sidebar asks the application for. */
export interface ISidebarActions {
  onOpen: (row: RunRow) => void;
  onResume: (row: RunRow) => void;
  onCompare: (first: RunRow, second: RunRow) => void;
  onNew: () => void;
}

/** The list of runs in the left area. It asks the server only while it can be seen. */
export class RunsSidebar extends Widget {
  constructor(
    private readonly server: RunServer,
    private readonly actions: ISidebarActions,
    private readonly trans: TranslationBundle
  ) {
    super();
    const label = trans.__('CuTeGen runs');
    this.id = 'cutegen-runs';
    this.addClass('cg-sidebar');
    this.title.icon = cutegenIcon;
    this.title.caption = label;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', label);
    server.changes.connect(this.onChanges);
  }

  /** Only runs below this folder are listed; empty for all. */
  set folder(value: string) {
    this._folder = value;
    this.draw();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.server.changes.disconnect(this.onChanges);
    render(null, this.node);
    super.dispose();
  }

  protected override onAfterShow(): void {
    this.draw();
  }

  protected override onActivateRequest(): void {
    this.draw();
    this.node.querySelector<HTMLElement>('input[type=search]')?.focus();
  }

  private readonly onChanges = (): void => {
    this.version += 1;
    this.draw();
  };

  private draw(): void {
    if (this.isVisible && !this.isDisposed) {
      render(
        <Runs
          trans={this.trans}
          server={this.server}
          folder={this._folder}
          version={this.version}
          live={this.server.latest !== null}
          {...this.actions}
        />,
        this.node
      );
    }
  }

  private _folder = '';
  private version = 0;
}
