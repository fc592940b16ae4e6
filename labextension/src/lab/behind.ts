import type { TranslationBundle } from '@jupyterlab/translation';
import type { IBackend, Look } from '../run/verbs';

/** Why the server gave nothing, in words. */
export function failureOf(error: unknown, trans: TranslationBundle): string {
  return error instanceof Error && error.message ? error.message : trans.__('The server did not answer.');
}

/** The server behind a view: `look` asks it; it hears no answers. */
export function serverBehind(look: Look, trans: TranslationBundle): IBackend {
  return {
    ask: null,
    look: async query => {
      try {
        return await look(query);
      } catch (error) {
        throw new Error(failureOf(error, trans), { cause: error });
      }
    }
  };
}
