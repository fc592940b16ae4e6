import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { languageOf, type Language } from './languages';
import { phrases } from './phrases';

/** Classes, so that colours stand with the others in the style sheet and follow the host's theme. */
const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.operatorKeyword], class: 'cg-t-keyword' },
  { tag: [tags.string, tags.special(tags.string)], class: 'cg-t-string' },
  { tag: [tags.comment, tags.docString], class: 'cg-t-comment' },
  { tag: [tags.number, tags.bool, tags.null], class: 'cg-t-number' },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.className], class: 'cg-t-name' },
  { tag: [tags.meta, tags.modifier, tags.labelName], class: 'cg-t-meta' }
]);

const THEME = EditorView.theme({
  '&': { font: '12px/1.5 var(--cg-code-font)', backgroundColor: 'var(--cg-bg)', color: 'var(--cg-fg)' },
  '.cm-scroller': { font: 'inherit', overflow: 'auto' },
  '.cm-content': { padding: '2px 0', caretColor: 'var(--cg-fg)' },
  '.cm-gutters': {
    backgroundColor: 'var(--cg-bg)',
    color: 'var(--cg-muted)',
    border: 'none',
    userSelect: 'none'
  },
  '.cm-cursor': { borderLeftColor: 'var(--cg-fg)' },
  '.cm-panels': { backgroundColor: 'var(--cg-bg-soft)', color: 'var(--cg-fg)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--cg-bg-soft)',
    color: 'var(--cg-fg)',
    border: '1px solid var(--cg-line)'
  }
});

/** What every text here has: numbers of lines, colours, search with Ctrl-F. */
export function common(language: Language, label: string): Extension {
  return [
    phrases(),
    lineNumbers(),
    highlightSpecialChars(),
    languageOf(language),
    syntaxHighlighting(HIGHLIGHT),
    THEME,
    search({ top: true }),
    highlightSelectionMatches(),
    keymap.of(searchKeymap),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' })
  ];
}

export const readOnly: Extension = [EditorState.readOnly.of(true), EditorView.editable.of(false)];

/** Tab indents; Escape and then Tab leaves, so that the keyboard is never trapped (CodeMirror's own rule). */
export const writable: Extension = [
  history(),
  drawSelection(),
  indentUnit.of('    '),
  EditorState.tabSize.of(4),
  keymap.of([indentWithTab, ...defaultKeymap, ...historyKeymap])
];
