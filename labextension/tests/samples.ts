import { EditorView } from '@codemirror/view';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ITabProps } from '../src/run/tabs';
import type { RunView } from '../src/schema';

export type SampleName =
  | 'review'
  | 'running'
  | 'interrupted'
  | 'done'
  | 'unproven'
  | 'started'
  | 'hostile'
  | 'pinned'
  | 'model'
  | 'measured';

/** A run as Python's build_view wrote it (tests/packaging/make_samples.py); a fresh copy each time. */
export function sample(name: SampleName): RunView {
  return JSON.parse(readFileSync(resolve(import.meta.dirname, 'samples', `${name}.json`), 'utf8')) as RunView;
}

/** What a tab is given in a saved run, about its first candidate: nothing can be asked. */
export function unattached(name: SampleName): ITabProps {
  const view = sample(name);
  const candidate = view.candidates[0];
  if (candidate === undefined) {
    throw new Error('the sample has no candidate');
  }
  const given = { view, candidate, parent: null, compared: null };
  return { ...given, onCompare: () => undefined, ask: null, look: null };
}

/** The element with this text or label, or a failure that shows what is there. */
export function button(host: HTMLElement, name: string | RegExp): HTMLButtonElement {
  const all = [...host.querySelectorAll('button')];
  const found = all.find(each => {
    const text = each.textContent.trim();
    return typeof name === 'string' ? text === name : name.test(text);
  });
  if (found === undefined) {
    throw new Error(`no button ${String(name)}; there are: ${all.map(each => each.textContent).join(' | ')}`);
  }
  return found;
}

export function verbs(host: HTMLElement): string[] {
  return [...host.querySelectorAll('[data-verb]')].map(each => each.getAttribute('data-verb') ?? '').sort();
}

export function type(area: HTMLTextAreaElement, text: string): void {
  area.value = text;
  area.dispatchEvent(new Event('input', { bubbles: true }));
}

/** The text that a screen reader calls so. */
export function text(host: HTMLElement, label: string): EditorView {
  const labels = [...host.querySelectorAll<HTMLElement>('.cm-content')];
  const found = labels.find(each => each.getAttribute('aria-label') === label);
  const view = found && EditorView.findFromDOM(found);
  if (!view) {
    throw new Error(`no text ${label}; there are: ${labels.map(each => each.ariaLabel).join(' | ')}`);
  }
  return view;
}

export function replace(view: EditorView, whole: string): void {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: whole } });
}
