const INTRO = `# A new kernel, step by step

The cell below takes a PyTorch reference and returns at once; the view under it shows each candidate being generated,
compiled, checked, timed and profiled. Approve, reject with a reason, edit, or branch: the next refinement starts from
your answer. Without a GPU the checks run on the emulator, and times are predictions, labelled so.`;

const EXAMPLE = `%%cutegen --name softmax --inputs "x: bf16[4096, 8192]" --arch sm_90a
import torch


def reference(x):
    return torch.softmax(x, dim=-1)`;

export interface ICell {
  kind: 'markdown' | 'code';
  source: string;
}

const LOAD: ICell = { kind: 'code', source: '%load_ext cutegen_lab' };

/** Cells of a first notebook. */
export const QUICKSTART: readonly ICell[] = [
  { kind: 'markdown', source: INTRO },
  LOAD,
  { kind: 'code', source: EXAMPLE },
  { kind: 'code', source: '' }
];

/** Cells that take a run up. */
export function resuming(runId: string): readonly ICell[] {
  return [LOAD, { kind: 'code', source: `%cutegen resume ${runId}` }];
}

/** Cells that make a kernel of the reference in a file. */
export function makingKernel(name: string, source: string): readonly ICell[] {
  return [LOAD, { kind: 'code', source: `%%cutegen --name ${name}\n${source.trimEnd()}` }];
}

export interface IKernelSpec {
  name: string;
  display_name: string;
}

/** `cells` as an nbformat 4.5 notebook on `kernel`. */
export function notebookOf(cells: readonly ICell[], kernel: IKernelSpec) {
  return {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: { kernelspec: { name: kernel.name, display_name: kernel.display_name, language: 'python' } },
    cells: cells.map(({ kind, source }, index) => ({
      id: `cutegen-${index}`,
      cell_type: kind,
      metadata: {},
      source,
      ...(kind === 'code' ? { execution_count: null, outputs: [] } : {})
    }))
  };
}
