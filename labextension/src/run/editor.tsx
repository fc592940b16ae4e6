import { useRef, useState } from 'preact/hooks';

interface IEditorProps {
  id: string;
  original: string;
  draft: string;
  busy: boolean;
  onDraft: (text: string) => void;
  onRun: (text: string) => void;
  onCancel: () => void;
}

/** A candidate's source to change by hand. Tab indents; Escape then Tab leaves, so that the keyboard is never trapped. */
export function Editor({ id, original, draft, busy, onDraft, onRun, onCancel }: IEditorProps) {
  const [text, setText] = useState(draft);
  const leaving = useRef(false);
  const change = (next: string) => {
    setText(next);
    onDraft(next);
  };
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    if (event.key === 'Escape') {
      leaving.current = true;
      return;
    }
    if (event.key === 'Tab' && !event.shiftKey && !leaving.current) {
      event.preventDefault();
      const area = event.currentTarget;
      area.setRangeText('    ', area.selectionStart, area.selectionEnd, 'end');
      change(area.value);
    }
    leaving.current = false;
  };
  return (
    <div class="cg-prompt" role="group" aria-label={`Edit ${id}`}>
      <label>
        Edit {id}. Exactly this text runs next, as a new candidate.
        <textarea
          class="cg-input cg-editor"
          rows={Math.min(28, Math.max(8, text.split('\n').length + 1))}
          spellcheck={false}
          autocomplete="off"
          wrap="off"
          value={text}
          onInput={event => change(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
      </label>
      <div class="cg-row">
        <button
          type="button"
          class="cg-button cg-primary"
          disabled={busy || text === original}
          onClick={() => onRun(text)}
        >
          Run edited
        </button>
        <button type="button" class="cg-button" disabled={text === original} onClick={() => change(original)}>
          Reset
        </button>
        <button type="button" class="cg-button" onClick={onCancel}>
          Close
        </button>
        <span class="cg-muted">Tab indents · Esc then Tab moves on · Close keeps the draft</span>
      </div>
    </div>
  );
}
