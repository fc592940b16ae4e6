import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import type { IKernelSpec } from './notebook';

/** The kernel a new notebook gets: the server's default where it speaks Python, else the first that does. */
async function pythonKernel(app: JupyterFrontEnd): Promise<IKernelSpec | null> {
  const manager = app.serviceManager.kernelspecs;
  await manager.ready;
  const specs = manager.specs;
  const all = Object.values(specs?.kernelspecs ?? {}).filter(spec => spec !== undefined);
  const python = all.filter(spec => spec.language.toLowerCase() === 'python');
  return python.find(spec => spec.name === specs?.default) ?? python[0] ?? null;
}

interface INewNotebook {
  folder: string;
  /** Its name; where a file has it, or where none is given, one like "Untitled.ipynb". */
  name?: string;
  /** The notebook, on this kernel. */
  content: (kernel: IKernelSpec) => object;
  /** Run all its cells once it is open. */
  runs?: boolean;
  /** What is said where there is no Python kernel. */
  noKernel: string;
}

/**
 * Whether a folder has a file of this name. The folder is listed: a request for a missing file leaves an error in the
 * console.
 */
async function isThere(app: JupyterFrontEnd, folder: string, name: string): Promise<boolean> {
  const listed = await app.serviceManager.contents.get(folder, { type: 'directory', content: true });
  return (listed.content as readonly { name: string }[]).some(each => each.name === name);
}

/** Written to disk first and then opened, so that the notebook is whole before any of its cells can run. */
export async function openNewNotebook(app: JupyterFrontEnd, wanted: INewNotebook): Promise<void> {
  const kernel = await pythonKernel(app);
  if (kernel === null) {
    throw new Error(wanted.noKernel);
  }
  const { contents } = app.serviceManager;
  const path =
    wanted.name !== undefined && !(await isThere(app, wanted.folder, wanted.name))
      ? PathExt.join(wanted.folder, wanted.name)
      : (await contents.newUntitled({ path: wanted.folder, type: 'notebook' })).path;
  await contents.save(path, { type: 'notebook', format: 'json', content: wanted.content(kernel) });
  const opened = (await app.commands.execute('docmanager:open', {
    path,
    factory: 'Notebook',
    kernel: { name: kernel.name }
  })) as { id: string; context?: { ready: Promise<void>; sessionContext: { ready: Promise<void> } } } | null;
  if (wanted.runs && opened?.context) {
    await opened.context.ready;
    await opened.context.sessionContext.ready;
    app.shell.activateById(opened.id);
    await app.commands.execute('notebook:run-all-cells');
  }
}
