import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { quickstartPlugin } from './lab/quickstart';

const plugins: JupyterFrontEndPlugin<void>[] = [quickstartPlugin];

export default plugins;
