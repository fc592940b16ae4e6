import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel } from '@lumino/widgets';
import { REST_EVENT, readRest, sameMoment } from '../rest';
import { MIME_TYPE } from '../run/read';
import { WIDGET_MIME, type INotebookKernel } from './kernel';
import { SavedRun, type IStored } from './saved';

/** How long a live view may take to appear before the saved one says that no kernel is attached. */
const PATIENCE_MS = 4000;
/** What ipywidgets marks a view with whose model lost its kernel. */
const DISCONNECTED = '.jupyter-widgets-disconnected';

/** The widget model a bundle shows, or null: a bundle without one, or one that is not trusted to run code. */
function widgetModelId(model: IRenderMime.IMimeModel | null): string | null {
  const view = model?.data[WIDGET_MIME] as { model_id?: unknown } | null | undefined;
  const id = model?.trusted ? view?.model_id : null;
  return typeof id === 'string' && id !== '' ? id : null;
}

/** The widget view alone, as a copy: ipywidgets blanks the id in what it was given when a view closes. */
function widgetBundle(modelId: string): IRenderMime.IMimeModel {
  const data = { [WIDGET_MIME]: { version_major: 2, version_minor: 0, model_id: modelId } };
  return { data, metadata: {}, trusted: true, setData: () => undefined };
}

/**
 * A run in a notebook's output: the saved view at once, and the live widget in its place for as long as that is really
 * there. "Really" is judged by the page alone: our own root element inside what ipywidgets rendered, still connected.
 */
export class RunOutput extends Panel implements IRenderMime.IRenderer {
  /** `find` reads a run from a store of this server; null where none has it. */
  constructor(
    private readonly kernel: INotebookKernel,
    private readonly find: (runId: string) => Promise<IStored | null> = () => Promise.resolve(null)
  ) {
    super();
    this.addClass('cg-output');
    this.addWidget(this.saved);
    kernel.changed.connect(this.follow);
    kernel.lost.connect(this.onLost);
    this.node.addEventListener(REST_EVENT, this.onRest);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.model = model;
    this.follow();
    await this.saved.renderModel(model);
    void this.readStored();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.node.removeEventListener(REST_EVENT, this.onRest);
    this.kernel.changed.disconnect(this.follow);
    this.kernel.lost.disconnect(this.onLost);
    this.drop();
    super.dispose(); // the children too
  }

  /** Makes the widget view that the bundle and the notebook's widget factory ask for; one that is right stays. */
  private readonly follow = (): void => {
    // A finished run is saved without its widget, but what lives goes on answering: what to export, what to compare.
    const modelId = widgetModelId(this.model) ?? (this.saved.isHidden ? this.modelId : null);
    const factory = modelId === null || modelId === this.lostId ? null : this.kernel.widgetFactory;
    if (modelId === this.modelId && factory === this.factory) {
      return;
    }
    this.drop();
    this.modelId = modelId;
    this.factory = factory;
    if (modelId === null || factory === null) {
      return;
    }
    const view = this.kernel.createWidgetView();
    const live = new Panel();
    live.addClass('cg-live');
    live.hide();
    live.addWidget(view);
    this.addWidget(live);
    this.live = live;
    this.observer = new MutationObserver(() => this.swap());
    this.observer.observe(live.node, { childList: true, subtree: true, attributeFilter: ['class'] });
    this.saved.awaited = true;
    this.patience = setTimeout(() => {
      this.saved.awaited = false;
      void this.readStored();
    }, PATIENCE_MS);
    view.renderModel(widgetBundle(modelId)).catch((error: unknown) => {
      console.warn('cutegen-lab: the live view did not start; the saved one stays.', error);
    });
  };

  private get runId(): unknown {
    return (this.model?.data[MIME_TYPE] as { run_id?: unknown } | null | undefined)?.run_id;
  }

  /** What was answered after the output was saved is in the store. */
  private async readStored(): Promise<void> {
    const { runId } = this;
    if (typeof runId !== 'string' || this.saved.awaited) {
      return;
    }
    const stored = await this.find(runId).catch(() => null);
    if (!this.isDisposed && !this.saved.isHidden && this.runId === runId) {
      this.saved.stored = stored;
    }
  }

  /** Shows the live view where it is there and connected, else the saved one. The keyboard's place goes along. */
  private swap(): void {
    const root = this.live?.node.querySelector('.cg-root') ?? null;
    const alive = root !== null && root.closest(DISCONNECTED) === null;
    if (alive === this.saved.isHidden) {
      return;
    }
    const focused = this.node.contains(document.activeElement);
    this.live?.setHidden(!alive);
    this.saved.setHidden(alive);
    this.saved.stored = null;
    clearTimeout(this.patience);
    this.saved.awaited = false;
    if (focused) {
      const shown = (alive ? this.live : this.saved)?.node;
      shown?.setAttribute('tabindex', '-1');
      shown?.focus({ preventScroll: true });
    }
  }

  private drop(): void {
    clearTimeout(this.patience);
    this.observer?.disconnect();
    this.observer = null;
    const live = this.live;
    this.live = null;
    this.swap();
    this.saved.awaited = false;
    live?.dispose();
  }

  private readonly onLost = (): void => {
    this.lostId = this.modelId;
    this.follow();
    void this.readStored();
  };

  /** Keeps what the live view last rested at in the output, where the kernel has not already put it there. */
  private readonly onRest = (event: Event): void => {
    const forms = readRest(event);
    if (forms !== null && this.model !== null && !sameMoment(forms[MIME_TYPE], this.model.data[MIME_TYPE])) {
      this.model.setData({ data: { ...this.model.data, ...forms } as IRenderMime.IMimeModel['data'] });
    }
  };

  private readonly saved = new SavedRun();
  private model: IRenderMime.IMimeModel | null = null;
  private modelId: string | null = null;
  private factory: IRenderMime.IRendererFactory | null = null;
  private lostId: string | null = null;
  private live: Panel | null = null;
  private observer: MutationObserver | null = null;
  private patience: ReturnType<typeof setTimeout> | undefined;
}
