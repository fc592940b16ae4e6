const INTRO = `# A new kernel, step by step

The cell below takes a PyTorch reference and returns at once; the view under it shows each candidate being generated,
compiled, checked, timed and profiled. Approve, reject with a reason, edit, or branch: the next refinement starts from
your answer. Without a GPU the checks run on the emulator, and times are predictions, labelled so.`;

const EXAMPLE = `%%cutegen --name softmax --inputs "x: bf16[4096, 8192]" --arch sm_90a
import torch


def reference(x):
    return torch.softmax(x, dim=-1)`;

const CELLS: readonly { kind: 'markdown' | 'code'; source: string }[] = [
  { kind: 'markdown', source: INTRO },
  { kind: 'code', source: '%load_ext cutegen_lab' },
  { kind: 'code', source: EXAMPLE },
  { kind: 'code', source: '' }
];

export interface IKernelSpec {
  name: string;
  display_name: string;
}

/** The quickstart as an nbformat 4.5 notebook on `kernel`. */
export function quickstartNotebook(kernel: IKernelSpec) {
  return {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: { kernelspec: { name: kernel.name, display_name: kernel.display_name, language: 'python' } },
    cells: CELLS.map(({ kind, source }, index) => ({
      id: `cutegen-${index}`,
      cell_type: kind,
      metadata: {},
      source,
      ...(kind === 'code' ? { execution_count: null, outputs: [] } : {})
    }))
  };
}
