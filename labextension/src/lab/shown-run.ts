import type { CommandRegistry } from '@lumino/commands';
import { MIME_TYPE } from '../run/read';
import { resuming } from './notebook';

type Commands = Pick<CommandRegistry, 'execute'>;

interface ICellWidget {
  readonly model: { toJSON(): unknown; readonly sharedModel: { setSource(text: string): void } };
}

/** A notebook in the main area (JupyterLab's `NotebookPanel`), as far as it is used here. */
export interface INotebookWidget {
  readonly context: { readonly ready: Promise<void>; readonly path: string };
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

/** Number of the last cell that shows the run; -1 where none does. */
export function cellOf({ content }: INotebookWidget, runId: string): number {
  return content.widgets.map(cell => shows(cell, runId)).lastIndexOf(true);
}

async function goTo({ content }: INotebookWidget, at: number): Promise<void> {
  content.activeCellIndex = at;
  await content.scrollToItem?.(at);
}

async function runBelow({ content }: INotebookWidget, source: string, commands: Commands): Promise<void> {
  await commands.execute('notebook:insert-cell-below');
  content.activeCell?.model.sharedModel.setSource(source);
  await commands.execute('notebook:run-cell');
}

/** Goes to the run in the notebook whose kernel drives it; where no cell shows it, a new one at the end does. */
export async function showIn(notebook: INotebookWidget, runId: string, commands: Commands): Promise<void> {
  await notebook.context.ready;
  const at = cellOf(notebook, runId);
  if (at >= 0) {
    await goTo(notebook, at);
    return;
  }
  notebook.content.activeCellIndex = notebook.content.widgets.length - 1;
  await runBelow(notebook, `%cutegen show ${runId}`, commands);
}

/** Resumes the run in a new cell below the one that shows it. */
export async function resumeIn(notebook: INotebookWidget, runId: string, commands: Commands): Promise<void> {
  await goTo(notebook, cellOf(notebook, runId));
  await runBelow(
    notebook,
    resuming(runId)
      .map(({ source }) => source)
      .join('\n'),
    commands
  );
}
