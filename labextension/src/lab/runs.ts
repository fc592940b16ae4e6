import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { ILauncher } from '@jupyterlab/launcher';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';
import type { IAway } from '../run/away';
import { RunServer } from '../runs/server';
import { keyOf } from '../runs/words';
import type { RunKey, RunRow } from '../schema';
import { addArchives } from './archive';
import { addComparisons } from './comparisons';
import { cutegenIcon } from './icon';
import { openNewNotebook } from './new-notebook';
import { makingKernel, notebookOf } from './notebook';
import { Notifier } from './notifier';
import { CommandIDs as Quickstart, noKernel } from './quickstart';
import { resumeRun } from './resume';
import { RunTab } from './run-tab';
import { RunsSidebar } from './sidebar';
import { StatusItem } from './status';

export namespace CommandIDs {
  export const show = 'cutegen-lab:show-runs';
  export const open = 'cutegen-lab:open-run';
  export const makeKernel = 'cutegen-lab:make-kernel';
  export const tutorial = 'cutegen-lab:tutorial';
}

const PYTHON_FILE = '.jp-DirListing-item[data-file-type="python"]';

interface IFileBrowser extends Widget {
  selectedItems(): Iterable<{ path: string; type: string }>;
}

/** The file that is selected in the file browser, if it is a Python file. */
function selectedPython(app: JupyterFrontEnd): string | null {
  const browser = [...app.shell.widgets('left')].find(each => each.id === 'filebrowser') as
    IFileBrowser | undefined;
  const [item] = browser?.selectedItems() ?? [];
  return item?.path.endsWith('.py') ? item.path : null;
}

function text(args: ReadonlyPartialJSONObject, name: string): string {
  const value = args[name];
  return typeof value === 'string' ? value : '';
}

/** Runs of all notebooks: the sidebar, tabs that outlive kernels, the status bar, notifications, files, launcher. */
export const runsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'cutegen-lab:runs',
  description: 'Lists the runs of all notebooks, and shows each without a kernel.',
  autoStart: true,
  optional: [
    ILabShell,
    ILayoutRestorer,
    ICommandPalette,
    ILauncher,
    IStatusBar,
    ISettingRegistry,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    statusBar: IStatusBar | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('cutegen_lab');
    const category = trans.__('CuTeGen');
    const { commands, shell } = app;
    const server = new RunServer(app.serviceManager.serverSettings);
    const tracker = new WidgetTracker<RunTab>({ namespace: 'cutegen-runs' });
    addArchives(app, server, trans);

    const openNotebook = (path: string) => commands.execute('docmanager:open', { path, factory: 'Notebook' });
    const away = (key: RunKey): IAway => ({
      reason: trans.__(
        'Shown from the store. A run is answered in a notebook, whose kernel compiles and checks.'
      ),
      label: trans.__('Resume in a notebook'),
      go: () => void resumeRun(app, server, key, trans)
    });

    const openRun = (key: RunKey): RunTab => {
      let tab = tracker.find(each => keyOf(each.key) === keyOf(key)) ?? null;
      if (tab === null) {
        tab = new RunTab(key, server, () => away(key), trans);
        void tracker.add(tab);
      }
      if (!tab.isAttached) {
        shell.add(tab, 'main');
      }
      shell.activateById(tab.id);
      return tab;
    };

    const compare = addComparisons(app, server, restorer, key => void openRun(key), trans);

    const sidebar = new RunsSidebar(
      server,
      {
        onOpen: row => void openRun(row),
        onResume: row => void resumeRun(app, server, row, trans),
        onCompare: compare,
        onNew: () => void commands.execute(Quickstart.newNotebook)
      },
      trans
    );
    shell.add(sidebar, 'left', { rank: 600 });
    restorer?.add(sidebar, 'cutegen-runs');

    commands.addCommand(CommandIDs.show, {
      label: trans.__('Show CuTeGen runs'),
      icon: cutegenIcon,
      execute: () => shell.activateById(sidebar.id)
    });
    commands.addCommand(CommandIDs.open, {
      label: args => text(args, 'run_id') || trans.__('Open a CuTeGen run'),
      execute: args => openRun({ store: text(args, 'store'), run_id: text(args, 'run_id') })
    });
    commands.addCommand(CommandIDs.makeKernel, {
      label: trans.__('Make a kernel of this'),
      caption: trans.__('Opens a notebook that turns this PyTorch reference into a kernel'),
      icon: cutegenIcon,
      isVisible: () => selectedPython(app) !== null,
      execute: async args => {
        const path = text(args, 'path') || selectedPython(app);
        if (path === null || path === '') {
          return;
        }
        const file = await app.serviceManager.contents.get(path, {
          type: 'file',
          format: 'text',
          content: true
        });
        const stem = PathExt.basename(path, '.py').replace(/[^A-Za-z0-9_-]+/g, '_');
        await openNewNotebook(app, {
          folder: PathExt.dirname(path),
          name: `${stem}.ipynb`,
          content: kernel => notebookOf(makingKernel(stem, String(file.content)), kernel),
          runs: true,
          noKernel: noKernel(trans)
        });
      }
    });
    app.contextMenu.addItem({ command: CommandIDs.makeKernel, selector: PYTHON_FILE, rank: 4 });
    palette?.addItem({ command: CommandIDs.show, category });
    void restorer?.restore(tracker, {
      command: CommandIDs.open,
      args: tab => ({ store: tab.key.store, run_id: tab.key.run_id }),
      name: tab => keyOf(tab.key)
    });

    commands.addCommand(CommandIDs.tutorial, {
      label: args => text(args, 'title') || trans.__('A CuTeGen tutorial'),
      icon: cutegenIcon,
      execute: async args => {
        const name = text(args, 'name');
        const content = (await server.tutorial(name)) as object;
        await openNewNotebook(app, {
          folder: text(args, 'cwd'),
          name,
          content: () => content,
          noKernel: noKernel(trans)
        });
      }
    });
    const addTutorials = async (): Promise<void> => {
      const found = await server.tutorials();
      found.forEach(({ name, title }, index) => {
        const args = { name, title };
        launcher?.add({ command: CommandIDs.tutorial, category, rank: 2 + index, args });
        palette?.addItem({ command: CommandIDs.tutorial, category, args });
      });
    };
    addTutorials().catch((error: unknown) => {
      console.warn('cutegen-lab: the server extension did not answer; there are no tutorials.', error);
    });

    const goTo = (row: RunRow) => (row.notebook ? openNotebook(row.notebook) : openRun(row));
    const notifier = new Notifier(
      trans,
      row => void goTo(row),
      row => {
        const current = labShell?.currentWidget;
        if (current instanceof RunTab) {
          return keyOf(current.key) === keyOf(row);
        }
        const { context } = (current ?? {}) as { context?: { path?: string } };
        return row.notebook !== '' && context?.path === row.notebook;
      }
    );
    labShell?.currentChanged.connect(() => notifier.look());
    const status = new StatusItem(trans, () => void commands.execute(CommandIDs.show));
    statusBar?.registerStatusItem('cutegen-lab:status', { item: status, align: 'left', rank: 50 });
    server.changes.connect((_, changes) => {
      status.show_(changes);
      notifier.hear(changes);
    });

    const follow = async (): Promise<void> => {
      const settings = await registry?.load(runsPlugin.id).catch((error: unknown) => {
        console.warn('cutegen-lab: the settings could not be read; the defaults stay.', error);
      });
      const take = () => {
        const { folder, notifications, seconds } = settings?.composite ?? {};
        sidebar.folder = typeof folder === 'string' ? folder : '';
        notifier.enabled = notifications !== false;
        server.follow(typeof seconds === 'number' ? seconds : 1);
      };
      settings?.changed.connect(take);
      take();
    };
    void follow();
  }
};
