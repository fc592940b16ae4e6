import type { Verb } from './verbs';
import { trans } from './words';

/** The commands of single keys, as the help names them in the language of the page. */
export const COMMANDS = {
  get approve() {
    return trans.__('approve the candidate under review');
  },
  get reject() {
    return trans.__('reject it with a reason');
  },
  get edit() {
    return trans.__('edit it');
  },
  get retry() {
    return trans.__('ask again from the same parent');
  },
  get branch() {
    return trans.__('branch from the selected candidate');
  },
  get comment() {
    return trans.__('comment on the selected lines');
  },
  get pin() {
    return trans.__('pin the selected lines, a function or a parameter');
  },
  get compare() {
    return trans.__('compare the selected candidate with the one in focus, or its parent');
  },
  get next() {
    return trans.__('select the next candidate of the lineage');
  },
  get previous() {
    return trans.__('select the one before');
  },
  get help() {
    return trans.__('show or hide these keys');
  }
};

export type Command = keyof typeof COMMANDS;

/** What the keys are without the analyst's settings; `schema/keys.json` has the same. */
export const DEFAULTS: Readonly<Record<Command, string>> = {
  approve: 'a',
  reject: 'r',
  edit: 'e',
  retry: 't',
  branch: 'b',
  comment: 'm',
  pin: 'p',
  compare: 'c',
  next: 'j',
  previous: 'k',
  help: '?'
};

/**
 * Where JupyterLab's extension leaves the analyst's keys for every widget of the page: the widget's bundle is another
 * one, which knows no settings.
 */
export function leaveKeys(keys: unknown, page: HTMLElement = document.documentElement): void {
  page.dataset.cutegenKeys = JSON.stringify(keys ?? {});
}

/** The keys of this page: the analyst's where there are any, else the defaults. What is no key is left out. */
export function currentKeys(page: HTMLElement = document.documentElement): Record<Command, string> {
  let given: unknown = {};
  try {
    given = JSON.parse(page.dataset.cutegenKeys ?? '{}');
  } catch {
    // Not ours.
  }
  const own = typeof given === 'object' && given !== null ? (given as Record<string, unknown>) : {};
  const found = { ...DEFAULTS };
  for (const command of Object.keys(DEFAULTS) as Command[]) {
    const key = own[command];
    if (typeof key === 'string' && key.length === 1) {
      found[command] = key.toLowerCase();
    }
  }
  return found;
}

/** The verbs whose button a command presses: the first that is there. */
export const PRESSED: Readonly<
  Record<Exclude<Command, 'next' | 'previous' | 'compare' | 'help'>, readonly Verb[]>
> = {
  approve: ['approve', 'approve_unproven'],
  reject: ['reject'],
  edit: ['edit'],
  retry: ['retry'],
  branch: ['branch'],
  comment: ['comment'],
  pin: ['pin']
};

/** The command of a key press; null for one with a modifier, or in a text field. */
export function commandOf(event: KeyboardEvent, keys: Readonly<Record<Command, string>>): Command | null {
  const target = event.target instanceof Element ? event.target : null;
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target?.closest('input, textarea, select, [contenteditable="true"]')
  ) {
    return null;
  }
  const pressed = event.key.toLowerCase();
  // Of two with one key, the one that the analyst gave it.
  const mine = (Object.keys(keys) as Command[]).filter(command => keys[command] === pressed);
  return mine.find(command => DEFAULTS[command] !== pressed) ?? mine[0] ?? null;
}
