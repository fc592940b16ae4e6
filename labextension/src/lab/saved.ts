import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import type { IAway } from '../run/away';
import { mount, unmount } from '../run/mount';
import { MIME_TYPE } from '../run/read';
import type { IBackend } from '../run/verbs';

/** A run from a store. */
export interface IStored {
  run: unknown;
  backend: IBackend;
  away: IAway;
}

/** A saved run in a notebook's output or a file: the same view as the live one, without verbs. */
export class SavedRun extends Widget implements IRenderMime.IRenderer {
  constructor() {
    super();
    this.addClass('cg-mime');
  }

  /** While a live view may still take this one's place: then it does not say that no kernel is attached. */
  get awaited(): boolean {
    return this._awaited;
  }
  set awaited(value: boolean) {
    if (value !== this._awaited) {
      this._awaited = value;
      this._show();
    }
  }

  /** The run as a store of this server has it, with what stands behind it; null shows what was saved. */
  get stored(): IStored | null {
    return this._stored;
  }
  set stored(value: IStored | null) {
    if (value !== this._stored) {
      this._stored = value;
      this._show();
    }
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._run = model.data[MIME_TYPE];
    this._show();
    return Promise.resolve();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      unmount(this.node);
    }
    super.dispose();
  }

  private _show(): void {
    if (this._run !== undefined && !this.isDisposed) {
      const { run, backend, away } = this._stored ?? { run: this._run, backend: null, away: null };
      mount(this.node, run, backend, this._awaited, away);
    }
  }

  private _run: unknown;
  private _stored: IStored | null = null;
  private _awaited = false;
}
