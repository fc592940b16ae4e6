import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator, nullTranslator, type TranslationBundle } from '@jupyterlab/translation';
import { cutegenIcon } from './icon';
import { openNewNotebook } from './new-notebook';
import { notebookOf, QUICKSTART } from './notebook';

export namespace CommandIDs {
  export const newNotebook = 'cutegen-lab:new-notebook';
}

/** What is said where no kernel speaks Python. */
export function noKernel(trans: TranslationBundle): string {
  return trans.__(
    'No Python kernel is installed on this server: install ipykernel there, then reload the page.'
  );
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
        openNewNotebook(app, {
          folder: typeof args['cwd'] === 'string' ? args['cwd'] : '',
          content: kernel => notebookOf(QUICKSTART, kernel),
          noKernel: noKernel(trans)
        })
    });
    palette?.addItem({ command: CommandIDs.newNotebook, category });
    launcher?.add({ command: CommandIDs.newNotebook, category, rank: 1 });
  }
};
