import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { SavedRun } from './lab/saved';
import { MIME_TYPE } from './run/read';

const extension: IRenderMime.IExtension = {
  id: 'cutegen-lab:run-renderer',
  description: 'Renders saved cutegen runs in notebooks and from .cutegen-run.json files.',
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME_TYPE],
    defaultRank: 10, // before text/html, which carries the same run for viewers without this extension
    createRenderer: () => new SavedRun()
  },
  dataType: 'json',
  fileTypes: [
    {
      name: 'cutegen-run',
      displayName: 'CuTeGen run',
      extensions: ['.cutegen-run.json'],
      mimeTypes: [MIME_TYPE],
      fileFormat: 'text'
    }
  ],
  documentWidgetFactoryOptions: {
    name: 'CuTeGen run',
    primaryFileType: 'cutegen-run',
    fileTypes: ['cutegen-run'],
    defaultFor: ['cutegen-run']
  }
};

export default extension;
