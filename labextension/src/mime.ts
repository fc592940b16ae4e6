import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { mount, unmount } from './run/mount';
import { MIME_TYPE } from './run/read';

/** A saved run in a notebook's output or a file: the same view, without verbs. */
class RunRenderer extends Widget implements IRenderMime.IRenderer {
  constructor() {
    super();
    this.addClass('cg-mime');
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    mount(this.node, model.data[MIME_TYPE], null);
    return Promise.resolve();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      unmount(this.node);
    }
    super.dispose();
  }
}

const extension: IRenderMime.IExtension = {
  id: 'cutegen-lab:run-renderer',
  description: 'Renders saved cutegen runs in notebooks and from .cutegen-run.json files.',
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME_TYPE],
    defaultRank: 10, // before text/html, which carries the same run for viewers without this extension
    createRenderer: () => new RunRenderer()
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
