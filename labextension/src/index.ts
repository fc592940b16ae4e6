import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { keysPlugin } from './lab/keys';
import { outputsPlugin } from './lab/outputs';
import { quickstartPlugin } from './lab/quickstart';

const plugins: JupyterFrontEndPlugin<void>[] = [quickstartPlugin, outputsPlugin, keysPlugin];

export default plugins;
