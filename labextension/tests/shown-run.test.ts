import { describe, expect, it, vi } from 'vitest';
import { cellOf, resumeIn, showIn } from '../src/lab/shown-run';
import { MIME_TYPE } from '../src/run/read';

const cell = (runId?: string) => {
  const outputs = runId === undefined ? [{ text: 'x' }] : [{ data: { [MIME_TYPE]: { run_id: runId } } }];
  return { model: { toJSON: () => ({ outputs }), sharedModel: { setSource: vi.fn() } } };
};

function notebook(...cells: ReturnType<typeof cell>[]) {
  const scrollToItem = vi.fn(() => Promise.resolve());
  const content = { widgets: cells, activeCell: cells[0] ?? null, activeCellIndex: 0, scrollToItem };
  const execute = vi.fn((command: string) => {
    if (command === 'notebook:insert-cell-below') {
      content.activeCell = cell();
      cells.push(content.activeCell);
    }
    return Promise.resolve();
  });
  return { opened: { context: { ready: Promise.resolve(), path: 'run.ipynb' }, content }, execute };
}

describe('a run in its notebook', () => {
  it('is gone to where a cell shows it', async () => {
    const { opened, execute } = notebook(cell(), cell('other'), cell('mine'));
    await showIn(opened, 'mine', { execute });
    expect(opened.content.activeCellIndex).toBe(2);
    expect(opened.content.scrollToItem).toHaveBeenCalledWith(2);
    expect(execute).not.toHaveBeenCalled();
  });

  it('is shown by a new cell where none does: a cell that was run again shows its newer run', async () => {
    const { opened, execute } = notebook(cell(), cell('newer'));
    await showIn(opened, 'mine', { execute });
    expect(opened.content.activeCellIndex).toBe(1);
    expect(opened.content.activeCell?.model.sharedModel.setSource).toHaveBeenCalledWith('%cutegen show mine');
    expect(execute.mock.calls.map(([command]) => command)).toEqual([
      'notebook:insert-cell-below',
      'notebook:run-cell'
    ]);
  });

  it('is resumed in a new cell below the last one that shows it', async () => {
    const { opened, execute } = notebook(cell('mine'), cell('other'), cell('mine'), cell());
    expect(cellOf(opened, 'mine')).toBe(2);
    expect(cellOf(opened, 'nowhere')).toBe(-1);
    await resumeIn(opened, 'mine', { execute });
    expect(opened.content.activeCellIndex).toBe(2);
    expect(opened.content.activeCell?.model.sharedModel.setSource).toHaveBeenCalledWith(
      '%load_ext cutegen_lab\n%cutegen resume mine'
    );
    expect(execute.mock.calls.map(([command]) => command)).toEqual([
      'notebook:insert-cell-below',
      'notebook:run-cell'
    ]);
  });
});
