import type { JupyterFrontEnd } from '@jupyterlab/application';
import { describe, expect, it } from 'vitest';
import { openNewNotebook } from '../src/lab/new-notebook';

const PYTHON = { name: 'python3', display_name: 'Python 3', language: 'python' };

/** Names under which notebooks are written, in a folder that has `here.ipynb`; what was asked for on the way. */
async function written(name: string) {
  const saved: string[] = [];
  const asked: string[] = [];
  const contents = {
    get: (path: string) => {
      asked.push(path);
      return Promise.resolve({ content: [{ name: 'here.ipynb' }] });
    },
    newUntitled: ({ path }: { path: string }) => Promise.resolve({ path: `${path}/Untitled.ipynb` }),
    save: (path: string) => Promise.resolve(saved.push(path))
  };
  const kernelspecs = { ready: Promise.resolve(), specs: { default: 'python3', kernelspecs: { PYTHON } } };
  const app = {
    serviceManager: { kernelspecs, contents },
    commands: { execute: () => Promise.resolve(null) }
  };
  await openNewNotebook(app as unknown as JupyterFrontEnd, {
    folder: 'work',
    name,
    content: () => ({}),
    noKernel: ''
  });
  return { saved, asked };
}

describe('a new notebook', () => {
  it('has its name where that is free, and none that is taken', async () => {
    expect((await written('new.ipynb')).saved).toEqual(['work/new.ipynb']);
    expect((await written('here.ipynb')).saved).toEqual(['work/Untitled.ipynb']);
  });

  it('asks for no file that may not be there', async () => {
    expect((await written('new.ipynb')).asked).toEqual(['work']);
  });
});
