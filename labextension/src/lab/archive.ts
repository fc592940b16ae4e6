import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ABCWidgetFactory, DocumentWidget, TextModelFactory } from '@jupyterlab/docregistry';
import type { DocumentRegistry, IDocumentWidget } from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { mount, unmount } from '../run/mount';
import type { IBackend, IQuery } from '../run/verbs';
import { failureOf, serverBehind } from './behind';
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

/** The server, which reads such files. */
interface IReader {
  archive(path: string): Promise<unknown>;
  lookInto(path: string, query: IQuery): Promise<unknown>;
}

/** The run in a file, which the server reads. */
export class ArchiveView extends Widget {
  constructor(read: Promise<unknown>, backend: IBackend, trans: TranslationBundle) {
    super();
    this.addClass('cg-page');
    read.then(
      run => this.isDisposed || mount(this.node, run, backend),
      (error: unknown) => {
        this.addClass('cg-page-failed');
        this.node.setAttribute('role', 'alert');
        this.node.textContent = failureOf(error, trans);
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
    private readonly server: IReader,
    private readonly trans: TranslationBundle,
    options: DocumentRegistry.IWidgetFactoryOptions
  ) {
    super(options);
  }

  protected createNewWidget(context: DocumentRegistry.Context): IDocumentWidget<ArchiveView> {
    const { server, trans } = this;
    const backend = serverBehind(query => server.lookInto(context.localPath, query), trans);
    const read = context.ready.then(() => server.archive(context.localPath));
    const content = new ArchiveView(read, backend, trans);
    return new DocumentWidget({ content, context });
  }
}

/** `.cutegen` files open as the run they hold, to look at. */
export function addArchives(app: JupyterFrontEnd, server: IReader, trans: TranslationBundle): void {
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
    new ArchiveFactory(server, trans, {
      name: NAME,
      label,
      modelName: FILE_TYPE,
      fileTypes: [FILE_TYPE],
      defaultFor: [FILE_TYPE],
      readOnly: true
    }) as unknown as DocumentRegistry.WidgetFactory // whose optional properties may be undefined
  );
}
