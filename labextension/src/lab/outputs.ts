import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { Widget } from '@lumino/widgets';
import { MIME_TYPE } from '../run/read';
import { NotebookKernel } from './kernel';
import { RunOutput } from './output';

/** Before ipywidgets' own -10: of a bundle that holds a run and a widget view, the run is asked first. */
const RANK = -20;

function hasRendermime(content: unknown): content is { rendermime: IRenderMimeRegistry } {
  return typeof content === 'object' && content !== null && 'rendermime' in content;
}

/** Runs in notebooks show as saved until their widget is there. A document extension, so Notebook 7 has it too. */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'cutegen-lab:outputs',
  description: 'Shows a saved run where no kernel can show the live one.',
  autoStart: true,
  activate: (app: JupyterFrontEnd): void => {
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: (panel: Widget & { content?: unknown }, context: DocumentRegistry.Context) => {
        if (!hasRendermime(panel.content)) {
          return;
        }
        const kernel = new NotebookKernel(panel.content.rendermime, context.sessionContext);
        const factory = { safe: true, mimeTypes: [MIME_TYPE], createRenderer: () => new RunOutput(kernel) };
        panel.content.rendermime.addFactory(factory, RANK);
        return kernel;
      }
    });
  }
};
