import { JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, ITranslatorConnector, TranslatorConnector } from '@jupyterlab/translation';
import { leaveWords } from '../run/words';

const DOMAIN = 'cutegen_lab';

/**
 * The run view's words in JupyterLab's language. A translator tells one text at a time and not what its catalogue has,
 * so this is asked for where the translator got it. The views are drawn again once it is there: nothing waits for it.
 */
export const wordsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'cutegen-lab:words',
  description: "The run widget's texts, in JupyterLab's language.",
  autoStart: true,
  optional: [ITranslator, ITranslatorConnector, JupyterFrontEnd.IPaths],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null,
    connector: ITranslatorConnector | null,
    paths: JupyterFrontEnd.IPaths | null
  ): void => {
    const language = translator?.languageCode ?? 'en';
    if (language === 'en') {
      return;
    }
    const source =
      connector ?? new TranslatorConnector(paths?.urls.translations, app.serviceManager.serverSettings);
    source.fetch({ language: language.replaceAll('-', '_') }).then(
      pack => leaveWords(language.replaceAll('_', '-'), pack.data[DOMAIN]),
      (error: unknown) => {
        console.warn('cutegen-lab: the catalogue could not be read; the run view stays English.', error);
      }
    );
  }
};
