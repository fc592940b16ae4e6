import { linter, lintGutter, type Diagnostic } from '@codemirror/lint';
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { common, readOnly, writable } from '../code/setup';
import type { DiagnosticView } from '../schema';
import type { Look } from './verbs';
import { trans } from './words';

const WIDE = 760; // px from which the original stands beside the draft
const CHECKED_MS = 400; // after the last key

interface IEditorProps {
  id: string;
  original: string;
  draft: string;
  /** Whether the run's provider are the templates. */
  templates: boolean;
  busy: boolean;
  look: Look | null;
  onDraft: (text: string) => void;
  onRun: (text: string) => void;
  onCancel: () => void;
}

/** What the gate and the lint rules say about the draft, at its lines. */
function findings(id: string, look: Look): Extension {
  const check = async (view: EditorView): Promise<Diagnostic[]> => {
    const { doc } = view.state;
    const found = (await look({
      query: 'check',
      candidate_id: id,
      text: doc.toString()
    })) as DiagnosticView[];
    return found.map(each => {
      const line = doc.line(Math.min(Math.max(each.line, 1), doc.lines));
      const indent = /^\s*/.exec(line.text)?.[0].length ?? 0;
      return {
        from: line.from + indent,
        to: line.to,
        severity: each.severity === 'note' ? 'info' : each.severity,
        source: each.code,
        message: each.suggestion ? `${each.message}\n${each.suggestion}` : each.message
      };
    });
  };
  return [lintGutter(), linter(view => check(view).catch(() => []), { delay: CHECKED_MS })];
}

/** A candidate's source to change by hand, beside what it was. Escape, then Tab leaves the text. */
export function Editor({
  id,
  original,
  draft,
  templates,
  busy,
  look,
  onDraft,
  onRun,
  onCancel
}: IEditorProps) {
  const [start] = useState({ id, original, draft, look });
  const [text, setText] = useState(draft);
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | null>(null);
  const heard = useRef(onDraft);
  heard.current = onDraft;
  useLayoutEffect(() => {
    const parent = host.current;
    if (parent === null) {
      return;
    }
    const node = parent.getRootNode();
    const root = node instanceof ShadowRoot ? node : document;
    const own: Extension = [
      common('python', trans.__('Text of %1', start.id)),
      writable,
      start.look === null ? [] : findings(start.id, start.look),
      EditorView.updateListener.of(update => {
        if (update.docChanged) {
          const now = update.state.doc.toString();
          setText(now);
          heard.current(now);
        }
      })
    ];
    if (parent.clientWidth >= WIDE) {
      const merge = new MergeView({
        a: {
          doc: start.original,
          extensions: [common('python', trans.__('%1 as it is', start.id)), readOnly]
        },
        b: { doc: start.draft, extensions: own },
        parent,
        root
      });
      editor.current = merge.b;
      merge.b.focus();
      return () => merge.destroy();
    }
    const changes = unifiedMergeView({ original: start.original, mergeControls: false });
    const view = new EditorView({ doc: start.draft, extensions: [own, changes], parent, root });
    editor.current = view;
    view.focus();
    return () => view.destroy();
  }, [start]);
  const reset = () => {
    const view = editor.current;
    view?.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: original } });
  };
  return (
    <div class="cg-prompt" role="group" aria-label={trans.__('Edit %1', id)}>
      <p>
        {trans.__('Edit %1. Exactly this text runs next, as a new candidate.', id)}{' '}
        {templates && (
          <span class="cg-muted">
            {trans.__('Templates refine kernels of their own only: after your text, edit again or branch.')}
          </span>
        )}
      </p>
      <div class="cg-editor" ref={host} />
      <div class="cg-row">
        <button
          type="button"
          class="cg-button cg-primary"
          disabled={busy || text === original}
          onClick={() => onRun(text)}
        >
          {trans.__('Run edited')}
        </button>
        <button type="button" class="cg-button" disabled={text === original} onClick={reset}>
          {trans.__('Reset')}
        </button>
        <button type="button" class="cg-button" onClick={onCancel}>
          {trans.__('Close')}
        </button>
        <span class="cg-muted">
          {trans.__('Tab indents · Esc then Tab moves on · Close keeps the draft')}
        </span>
      </div>
    </div>
  );
}
