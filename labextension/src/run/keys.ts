import type { Verb } from './verbs';

export type Command = 'approve' | 'reject' | 'edit' | 'retry' | 'branch' | 'next' | 'previous';

/** What single keys do while the focus is in the widget, and not in a text. */
export const KEYS: Readonly<Record<string, Command>> = {
  a: 'approve',
  r: 'reject',
  e: 'edit',
  t: 'retry',
  b: 'branch',
  j: 'next',
  k: 'previous'
};

/** The verbs whose button a command presses: the first that is there. */
export const PRESSED: Readonly<Record<Exclude<Command, 'next' | 'previous'>, readonly Verb[]>> = {
  approve: ['approve', 'approve_unproven'],
  reject: ['reject'],
  edit: ['edit'],
  retry: ['retry'],
  branch: ['branch']
};

/** The command of a key press; null for one with a modifier, or in a text field. */
export function commandOf(event: KeyboardEvent, keys: Readonly<Record<string, Command>>): Command | null {
  const target = event.target instanceof Element ? event.target : null;
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target?.closest('input, textarea, select, [contenteditable]')
  ) {
    return null;
  }
  return keys[event.key.toLowerCase()] ?? null;
}
