import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { leaveKeys } from '../run/keys';

/** The widget's keys as the analyst set them; where there are no settings, the widget has its own. */
export const keysPlugin: JupyterFrontEndPlugin<void> = {
  id: 'cutegen-lab:keys',
  description: "The run widget's keys, from the settings.",
  autoStart: true,
  optional: [ISettingRegistry],
  activate: async (_: JupyterFrontEnd, registry: ISettingRegistry | null): Promise<void> => {
    if (registry === null) {
      return;
    }
    try {
      const settings = await registry.load(keysPlugin.id);
      const leave = () => leaveKeys(settings.composite.keys);
      settings.changed.connect(leave);
      leave();
    } catch (error) {
      console.warn('cutegen-lab: the keys could not be read from the settings; the defaults stay.', error);
    }
  }
};
