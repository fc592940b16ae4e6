import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';
import { keyOf } from '../runs/words';
import type { RunServer } from '../runs/server';
import type { RunKey } from '../schema';
import { openNewNotebook } from './new-notebook';
import { notebookOf, resuming } from './notebook';
import { noKernel } from './quickstart';
import { cellOf, resumeIn, showIn, type INotebookWidget } from './shown-run';

function isNotebook(widget: Widget): widget is Widget & INotebookWidget {
  const { content } = widget as { content?: { widgets?: unknown; activeCellIndex?: unknown } };
  return Array.isArray(content?.widgets) && typeof content.activeCellIndex === 'number';
}

function folderOf({ context }: INotebookWidget): string {
  return PathExt.dirname(context.path);
}

/**
 * To the notebook whose kernel drives the run. Where none does, it is resumed: in an open notebook with a cell that
 * shows it, otherwise in a new one.
 */
export async function resumeRun(
  app: JupyterFrontEnd,
  server: RunServer,
  key: RunKey,
  trans: TranslationBundle
): Promise<void> {
  const { commands, shell } = app;
  const { rows, stores } = await server.list({ q: key.run_id, limit: 500 });
  const row = rows.find(each => keyOf(each) === keyOf(key));
  if (row?.notebook) {
    const opened: unknown = await commands.execute('docmanager:open', {
      path: row.notebook,
      factory: 'Notebook'
    });
    if (opened !== null && opened !== undefined) {
      await showIn(opened as INotebookWidget, key.run_id, commands);
    }
    return;
  }
  const folder = stores.find(store => store.name === key.store)?.folder ?? '';
  const place = folder === '.' ? '' : folder;
  for (const widget of shell.widgets('main')) {
    // A notebook elsewhere may show the run too: its kernel has another store.
    if (isNotebook(widget) && cellOf(widget, key.run_id) >= 0 && folderOf(widget) === place) {
      shell.activateById(widget.id);
      await resumeIn(widget, key.run_id, commands);
      return;
    }
  }
  await openNewNotebook(app, {
    folder: place,
    name: `${key.run_id}.ipynb`,
    content: kernel => notebookOf(resuming(key.run_id), kernel),
    runs: true,
    noKernel: noKernel(trans)
  });
}
