import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { keysPlugin } from './lab/keys';
import { outputsPlugin } from './lab/outputs';
import { quickstartPlugin } from './lab/quickstart';
import { runsPlugin } from './lab/runs';
import { specCellsPlugin } from './lab/spec-cells';
import { wordsPlugin } from './lab/words';

const plugins: JupyterFrontEndPlugin<void>[] = [
  quickstartPlugin,
  outputsPlugin,
  keysPlugin,
  wordsPlugin,
  runsPlugin,
  specCellsPlugin
];

export default plugins;
