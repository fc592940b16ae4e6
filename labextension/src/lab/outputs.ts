import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';
import { MIME_TYPE } from '../run/read';
import { RunServer } from '../runs/server';
import { serverBehind } from './behind';
import { NotebookKernel } from './kernel';
import { RunOutput } from './output';
import { resumeRun } from './resume';
import type { IStored } from './saved';

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
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator | null): void => {
    const trans = (translator ?? nullTranslator).load('cutegen_lab');
    const server = new RunServer(app.serviceManager.serverSettings);
    const find = async (runId: string): Promise<IStored | null> => {
      const { rows } = await server.list({ q: runId, limit: 500 });
      const row = rows.find(each => each.run_id === runId);
      return row === undefined
        ? null
        : {
            run: await server.view(row),
            backend: serverBehind(query => server.look(row, query), trans),
            away: {
              reason: trans.__('Shown from the store: no kernel of this notebook drives the run.'),
              label:
                row.status === 'done' ? trans.__('Go on from this run') : trans.__('Resume in this notebook'),
              go: () => void resumeRun(app, server, row, trans)
            }
          };
    };
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: (panel: Widget & { content?: unknown }, context: DocumentRegistry.Context) => {
        if (!hasRendermime(panel.content)) {
          return;
        }
        const kernel = new NotebookKernel(panel.content.rendermime, context.sessionContext);
        const factory = {
          safe: true,
          mimeTypes: [MIME_TYPE],
          createRenderer: () => new RunOutput(kernel, find)
        };
        panel.content.rendermime.addFactory(factory, RANK);
        return kernel;
      }
    });
  }
};
