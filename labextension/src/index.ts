import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { outputsPlugin } from './lab/outputs';
import { quickstartPlugin } from './lab/quickstart';

const plugins: JupyterFrontEndPlugin<void>[] = [quickstartPlugin, outputsPlugin];

export default plugins;
