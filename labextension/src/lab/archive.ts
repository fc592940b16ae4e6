import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ABCWidgetFactory, DocumentWidget, TextModelFactory } from '@jupyterlab/docregistry';
import type { DocumentRegistry, IDocumentWidget } from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { mount, unmount } from '../run/mount';
import { cutegenIcon } from './icon';

const NAME = 'CuTeGen shared run';
const FILE_TYPE = 'cutegen-archive';

/** A file whose contents the page does not read: the server does, with a reader that expects hostile ones. */
class UnreadModelFactory extends TextModelFactory {
  override get name(): string {
    return FILE_TYPE;
  }
  override get contentType(): Contents.ContentType {
    return 'file';
  }
  override get fileFormat(): Contents.FileFormat {
    return null;
  }
}

class ArchiveView extends Widget {
  constructor(read: Promise<unknown>) {
    super();
    this.addClass('cg-page');
    read.then(
      run => this.isDisposed || mount(this.node, run, null),
      (error: unknown) => {
        this.addClass('cg-page-failed');
        this.node.setAttribute('role', 'alert');
        this.node.textContent = error instanceof Error ? error.message : String(error);
      }
    );
  }

  override dispose(): void {
    if (!this.isDisposed) {
      unmount(this.node);
    }
    super.dispose();
  }
}

class ArchiveFactory extends ABCWidgetFactory<IDocumentWidget<ArchiveView>> {
  constructor(
    private readonly read: (path: string) => Promise<unknown>,
    options: DocumentRegistry.IWidgetFactoryOptions
  ) {
    super(options);
  }

  protected createNewWidget(context: DocumentRegistry.Context): IDocumentWidget<ArchiveView> {
    const content = new ArchiveView(context.ready.then(() => this.read(context.localPath)));
    return new DocumentWidget({ content, context });
  }
}

/** `.cutegen` files open as the run they hold, to look at. */
export function addArchives(
  app: JupyterFrontEnd,
  read: (path: string) => Promise<unknown>,
  trans: TranslationBundle
): void {
  const label = trans.__('CuTeGen shared run');
  app.docRegistry.addFileType({
    name: FILE_TYPE,
    displayName: label,
    extensions: ['.cutegen'],
    mimeTypes: ['application/zip'],
    contentType: 'file',
    fileFormat: 'base64',
    icon: cutegenIcon
  });
  app.docRegistry.addModelFactory(new UnreadModelFactory());
  app.docRegistry.addWidgetFactory(
    new ArchiveFactory(read, {
      name: NAME,
      label,
      modelName: FILE_TYPE,
      fileTypes: [FILE_TYPE],
      defaultFor: [FILE_TYPE],
      readOnly: true
    }) as unknown as DocumentRegistry.WidgetFactory // whose optional properties may be undefined
  );
}
