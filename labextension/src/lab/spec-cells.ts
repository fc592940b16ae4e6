import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { language, StreamLanguage } from '@codemirror/language';
import { Prec, type Extension } from '@codemirror/state';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import { cutespec } from '../code/cutespec';

/** What IPython takes for the magic: blank lines may stand above it. */
const MAGIC = /^\s*%%cutespec(?=\s|$)/;
const LONGEST_LEAD = 1000;

/** Of a cell whose kernel has not said its language yet: CodeMirror parses once anything may give it a language. */
const plain = StreamLanguage.define({
  token: stream => {
    stream.skipToEnd();
    return null;
  }
});

/** In place of the editor's language while its text is a spec's cell. */
export const specInCells: Extension = [
  Prec.high(
    language.computeN(['doc'], ({ doc }) => (MAGIC.test(doc.sliceString(0, LONGEST_LEAD)) ? [cutespec] : []))
  ),
  Prec.lowest(language.of(plain))
];

interface IEditor {
  injectExtension(extension: Extension): void;
}

interface ICell {
  readonly model: { readonly type: string };
  /** Resolves once the cell is drawn: of a long notebook, when it is scrolled to. */
  readonly ready: Promise<void>;
  readonly editor: IEditor | null;
}

interface INotebook {
  readonly widgets: readonly ICell[];
  readonly model: { readonly cells: { readonly changed: ISignal<unknown, unknown> } } | null;
}

function isNotebook(content: unknown): content is INotebook {
  return typeof content === 'object' && content !== null && 'widgets' in content && 'model' in content;
}

/** Gives each code cell of a notebook the spec's colours. */
export class SpecCells implements IDisposable {
  constructor(private readonly notebook: INotebook) {
    notebook.model?.cells.changed.connect(this.look);
    this.look();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this.notebook.model?.cells.changed.disconnect(this.look);
  }

  private readonly look = (): void => {
    for (const cell of this.notebook.widgets) {
      if (cell.model.type === 'code' && !this.known.has(cell)) {
        this.known.add(cell);
        void cell.ready.then(() => cell.editor?.injectExtension(specInCells));
      }
    }
  };

  private readonly known = new WeakSet<ICell>();
  private _isDisposed = false;
}

/** A document extension, so Notebook 7 has it too. */
export const specCellsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'cutegen-lab:spec-cells',
  description: 'Shows cells that begin with %%cutespec in the colours of the spec language.',
  autoStart: true,
  activate: (app: JupyterFrontEnd): void => {
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: (panel: Widget & { content?: unknown }) =>
        isNotebook(panel.content) ? new SpecCells(panel.content) : undefined
    });
  }
};
