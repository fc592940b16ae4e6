import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { cutegenIcon } from './icon';
import { quickstartNotebook, type IKernelSpec } from './notebook';

export namespace CommandIDs {
  export const newNotebook = 'cutegen-lab:new-notebook';
}

/** The kernel a new notebook gets: the server's default where it speaks Python, else the first that does. */
async function pythonKernel(app: JupyterFrontEnd): Promise<IKernelSpec | null> {
  const manager = app.serviceManager.kernelspecs;
  await manager.ready;
  const specs = manager.specs;
  const all = Object.values(specs?.kernelspecs ?? {}).filter(spec => spec !== undefined);
  const python = all.filter(spec => spec.language.toLowerCase() === 'python');
  return python.find(spec => spec.name === specs?.default) ?? python[0] ?? null;
}

/** Written to disk first and then opened, so that the notebook is whole before any of its cells can run. */
async function openQuickstart(app: JupyterFrontEnd, folder: string, noKernel: string): Promise<void> {
  const kernel = await pythonKernel(app);
  if (kernel === null) {
    throw new Error(noKernel);
  }
  const { contents } = app.serviceManager;
  const { path } = await contents.newUntitled({ path: folder, type: 'notebook' });
  await contents.save(path, { type: 'notebook', format: 'json', content: quickstartNotebook(kernel) });
  await app.commands.execute('docmanager:open', { path, factory: 'Notebook', kernel: { name: kernel.name } });
}

/** The command, its place in the palette, and its card in the launcher. */
export const quickstartPlugin: JupyterFrontEndPlugin<void> = {
  id: 'cutegen-lab:quickstart',
  description: 'Opens a new notebook with the CuTeGen quickstart cells.',
  autoStart: true,
  optional: [ICommandPalette, ILauncher, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('cutegen_lab');
    const category = trans.__('CuTeGen');
    app.commands.addCommand(CommandIDs.newNotebook, {
      label: trans.__('New CuTeGen notebook'),
      caption: trans.__('A notebook that turns a PyTorch reference into a checked CuTe kernel'),
      icon: cutegenIcon,
      execute: args =>
        openQuickstart(
          app,
          typeof args['cwd'] === 'string' ? args['cwd'] : '',
          trans.__(
            'No Python kernel is installed on this server: install ipykernel there, then reload the page.'
          )
        )
    });
    palette?.addItem({ command: CommandIDs.newNotebook, category });
    launcher?.add({ command: CommandIDs.newNotebook, category, rank: 1 });
  }
};
