import { act } from 'preact/test-utils';
import { Signal } from '@lumino/signaling';
import { Panel } from '@lumino/widgets';
import { describe, expect, it, vi } from 'vitest';
import type { INotebookKernel } from '../src/lab/kernel';
import { RunOutput } from '../src/lab/output';
import type { IStored } from '../src/lab/saved';
import { MIME_TYPE } from '../src/run/read';
import { button, sample } from './samples';

class Kernel implements INotebookKernel {
  readonly widgetFactory = null;
  readonly changed: Signal<INotebookKernel, void> = new Signal<INotebookKernel, void>(this);
  readonly lost: Signal<INotebookKernel, void> = new Signal<INotebookKernel, void>(this);
  createWidgetView = (): never => {
    throw new Error('no widgets here');
  };
}

async function output(find: (runId: string) => Promise<IStored | null>): Promise<RunOutput> {
  const made = new RunOutput(new Kernel(), find);
  const data = { [MIME_TYPE]: sample('review') } as never;
  await act(() => made.renderModel({ data, metadata: {}, trusted: false, setData: () => undefined }));
  await act(async () => {
    for (let turn = 0; turn < 5; turn++) {
      await Promise.resolve();
    }
  });
  return made;
}

describe('a run in an output without its kernel', () => {
  it('is as the store has it, with the way to resume it', async () => {
    const go = vi.fn();
    const find = vi.fn<(runId: string) => Promise<IStored>>(() =>
      Promise.resolve({
        run: sample('done'),
        backend: { ask: null, look: () => Promise.reject(new Error('nothing')) },
        away: { reason: 'no kernel drives it', label: 'Resume in this notebook', go }
      })
    );
    const made = await output(find);
    expect(find).toHaveBeenCalledWith(sample('review').run_id);
    expect(made.node.querySelector('[role=status]')?.textContent).toContain('Done');
    button(made.node, 'Resume in this notebook').click();
    expect(go).toHaveBeenCalledOnce();
    made.dispose();
  });

  it('is as it was saved where no store has it, or no server answers', async () => {
    for (const find of [() => Promise.resolve(null), () => Promise.reject(new Error('404'))]) {
      const made = await output(find);
      expect(made).toBeInstanceOf(Panel);
      expect(made.node.querySelector('[role=status]')?.textContent).toContain('Your review');
      expect(made.node.textContent).toContain('A saved run, as it stood');
      made.dispose();
    }
  });
});
