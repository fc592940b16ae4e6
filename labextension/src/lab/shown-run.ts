import type { CommandRegistry } from '@lumino/commands';
import { MIME_TYPE } from '../run/read';

interface ICellWidget {
  readonly model: { toJSON(): unknown; readonly sharedModel: { setSource(text: string): void } };
}

/** A notebook in the main area (JupyterLab's `NotebookPanel`), as far as it is used here. */
export interface INotebookWidget {
  readonly context: { readonly ready: Promise<void> };
  readonly content: {
    readonly widgets: readonly ICellWidget[];
    readonly activeCell: ICellWidget | null;
    activeCellIndex: number;
    scrollToItem?(index: number): Promise<void>;
  };
}

/** Whether a cell's output is this run. A cell that was run again shows its newer run. */
function shows(cell: ICellWidget, runId: string): boolean {
  const { outputs = [] } = cell.model.toJSON() as { outputs?: { data?: Record<string, unknown> }[] };
  return outputs.some(
    ({ data }) => (data?.[MIME_TYPE] as { run_id?: unknown } | undefined)?.run_id === runId
  );
}

/** Goes to the run in the notebook whose kernel drives it; where no cell shows it, a new one at the end does. */
export async function showIn(
  notebook: INotebookWidget,
  runId: string,
  commands: Pick<CommandRegistry, 'execute'>
): Promise<void> {
  const { context, content } = notebook;
  await context.ready;
  const at = content.widgets.findIndex(cell => shows(cell, runId));
  if (at >= 0) {
    content.activeCellIndex = at;
    await content.scrollToItem?.(at);
    return;
  }
  content.activeCellIndex = content.widgets.length - 1;
  await commands.execute('notebook:insert-cell-below');
  content.activeCell?.model.sharedModel.setSource(`%cutegen show ${runId}`);
  await commands.execute('notebook:run-cell');
}
