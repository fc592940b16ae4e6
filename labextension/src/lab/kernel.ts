import type { ISessionContext } from '@jupyterlab/apputils';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Session } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';

export const WIDGET_MIME = 'application/vnd.jupyter.widget-view+json';

/** After one of these no widget model of the kernel before it will ever answer again. */
const GONE: readonly string[] = ['restarting', 'autorestarting', 'dead', 'terminating'];

/** What an output needs to know about the notebook it is in. */
export interface INotebookKernel {
  /** Renders a widget view now, or null while nothing in this notebook can. */
  readonly widgetFactory: IRenderMime.IRendererFactory | null;
  createWidgetView(): IRenderMime.IRenderer;
  /** Emitted when `widgetFactory` may have changed. */
  readonly changed: ISignal<INotebookKernel, void>;
  /** Emitted when the kernel that held the widget models is gone. */
  readonly lost: ISignal<INotebookKernel, void>;
}

/**
 * One notebook's kernel, as its outputs see it. ipywidgets replaces the widget factory of a notebook some time after
 * the first outputs are rendered and tells nobody, but always just after the session got ready or changed.
 */
export class NotebookKernel implements INotebookKernel, IDisposable {
  constructor(
    private readonly rendermime: IRenderMimeRegistry,
    private readonly session: ISessionContext
  ) {
    session.statusChanged.connect(this.onStatus);
    session.kernelChanged.connect(this.onKernel);
    void session.ready.then(this.later);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get lost(): ISignal<this, void> {
    return this._lost;
  }

  get widgetFactory(): IRenderMime.IRendererFactory | null {
    return this.rendermime.getFactory(WIDGET_MIME) ?? null;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  createWidgetView(): IRenderMime.IRenderer {
    return this.rendermime.createRenderer(WIDGET_MIME);
  }

  dispose(): void {
    this._isDisposed = true;
    this.session.statusChanged.disconnect(this.onStatus);
    this.session.kernelChanged.disconnect(this.onKernel);
    clearTimeout(this.timer);
    Signal.clearData(this);
  }

  private readonly onStatus = (_: unknown, status: string): void => {
    if (GONE.includes(status)) {
      this._lost.emit();
    } else {
      this.later();
    }
  };

  private readonly onKernel = (
    _: unknown,
    { oldValue, newValue }: Session.ISessionConnection.IKernelChangedArgs
  ): void => {
    if (oldValue !== null && oldValue.id !== newValue?.id) {
      this._lost.emit();
    }
    this.later();
  };

  /** A task later: ipywidgets waits for the same promises, and takes a few turns more. */
  private readonly later = (): void => {
    clearTimeout(this.timer);
    if (!this._isDisposed) {
      this.timer = setTimeout(() => this._changed.emit(), 0);
    }
  };

  private readonly _changed = new Signal<this, void>(this);
  private readonly _lost = new Signal<this, void>(this);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private _isDisposed = false;
}
