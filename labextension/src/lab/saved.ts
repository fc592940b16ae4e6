import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { mount, unmount } from '../run/mount';
import { MIME_TYPE } from '../run/read';

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
      mount(this.node, this._run, null, this._awaited);
    }
  }

  private _run: unknown;
  private _awaited = false;
}
