/** What fills %1, %2 … of a text. */
type Value = string | number;

interface IWords {
  rules: Intl.PluralRules;
  /** The forms of each text in the page's language: one, or one for each kind of number. */
  forms: ReadonlyMap<string, readonly string[]>;
}

const ENGLISH: IWords = { rules: new Intl.PluralRules('en'), forms: new Map() };
const LEFT = 'cutegen-words';

/**
 * Where JupyterLab's extension leaves the words for every run view of the page: the widget's bundle is another one,
 * which has no translator. `catalogue` holds the forms of each text; `language` is a BCP 47 tag.
 */
export function leaveWords(
  language: string,
  catalogue: unknown,
  page: HTMLElement = document.documentElement
): void {
  page.dataset.cutegenWords = JSON.stringify({ language, texts: catalogue ?? {} });
  page.dispatchEvent(new Event(LEFT));
}

/** Calls `listener` whenever words are left: a view may be drawn before. Returns what ends it. */
export function hearWords(listener: () => void, page: HTMLElement = document.documentElement): () => void {
  page.addEventListener(LEFT, listener);
  return () => page.removeEventListener(LEFT, listener);
}

const isForms = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every(each => typeof each === 'string');

/** What is left on the page may be anybody's: what has not the form of words is left out. */
function readWords(left: string): IWords {
  try {
    const { language, texts } = JSON.parse(left) as { language: unknown; texts: unknown };
    if (typeof language === 'string' && typeof texts === 'object' && texts !== null) {
      const forms = Object.entries(texts).filter((entry): entry is [string, string[]] => isForms(entry[1]));
      return { rules: new Intl.PluralRules(language), forms: new Map(forms) };
    }
  } catch {
    // No JSON, no object, or no language.
  }
  return ENGLISH;
}

let known = { left: '', words: ENGLISH };

function currentWords(): IWords {
  const left = document.documentElement.dataset.cutegenWords ?? '';
  if (left !== known.left) {
    known = { left, words: readWords(left) };
  }
  return known.words;
}

const KINDS = ['zero', 'one', 'two', 'few', 'many', 'other'] as const;

/**
 * The form for a number. A catalogue's own rule (`plural_forms`) is code, which is not run here: its forms are taken to
 * stand in Unicode's order of the language's kinds of number, the last one also for the kinds after it. That is so in
 * languages with one form (Japanese), with one and other (German, French) and in the Slavic ones and Arabic; not in
 * Latvian, whose catalogues have zero last.
 */
function formFor(count: number, forms: readonly string[], rules: Intl.PluralRules): string | undefined {
  const { pluralCategories } = rules.resolvedOptions();
  const kinds = KINDS.filter(kind => pluralCategories.includes(kind));
  return forms[Math.min(kinds.indexOf(rules.select(count)), forms.length - 1)];
}

/** As JupyterLab fills its texts; a place without a value stays, for `Phrase`. */
function filled(text: string, values: readonly Value[]): string {
  return text.replace(/%(%|\d+)/g, (place, at: string) =>
    at === '%' ? at : String(values[Number(at) - 1] ?? place)
  );
}

/**
 * The run view's texts in the language of the page, English where it has none. Named as JupyterLab's TranslationBundle,
 * so that its tools find them. To be called when a text is drawn: words may be left later than a module is loaded.
 */
export const trans = {
  /** `text` with its places %1, %2 … filled. */
  __(text: string, ...values: Value[]): string {
    return filled(currentWords().forms.get(text)?.[0] ?? text, values);
  },

  /** The form for `count`, which is %1; further values follow. */
  _n(one: string, many: string, count: number, ...values: Value[]): string {
    const { forms, rules } = currentWords();
    const found = forms.get(one);
    const text = (found && formFor(count, found, rules)) ?? (count === 1 ? one : many);
    return filled(text, [count, ...values]);
  }
};
