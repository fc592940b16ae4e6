import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { keysPlugin } from './lab/keys';
import { outputsPlugin } from './lab/outputs';
import { quickstartPlugin } from './lab/quickstart';
import { runsPlugin } from './lab/runs';

const plugins: JupyterFrontEndPlugin<void>[] = [quickstartPlugin, outputsPlugin, keysPlugin, runsPlugin];

export default plugins;
