import type { TranslationBundle } from '@jupyterlab/translation';
import { useState } from 'preact/hooks';
import type { RunRow } from '../schema';
import { ago, bestOf, standingOf } from './words';

/** Strokes on a square of 16. */
const ICONS = {
  go: 'M4 3l9 5-9 5z',
  compare: 'M5 14V2M2 5l3-3 3 3M11 2v12M8 11l3 3 3-3',
  rename: 'M3 13l1-3.5L10.5 3 13 5.5 6.5 12z',
  trash: 'M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4',
  back: 'M5.5 3.5L2 7l3.5 3.5M2 7h8.5a3 3 0 0 1 0 6H7'
};

/** What may be done with a run of the list. */
export interface IRowActions {
  onOpen: (row: RunRow) => void;
  onResume: (row: RunRow) => void;
  onCompare: (row: RunRow) => void;
  /** Whether the user may change runs. */
  writable: boolean;
  onRename: (row: RunRow, title: string) => void;
  onTrash: (row: RunRow, away: boolean) => void;
}

interface IRowProps extends IRowActions {
  trans: TranslationBundle;
  row: RunRow;
  now: number;
  /** The run that was chosen to compare another with, if one was. */
  compared: RunRow | null;
}

interface IRenameProps {
  label: string;
  before: string;
  onDone: (title: string | null) => void;
}

function Rename({ label, before, onDone }: IRenameProps) {
  const [title, setTitle] = useState(before);
  return (
    <input
      class="cg-input cg-rename"
      aria-label={label}
      maxLength={200}
      value={title}
      ref={element => element?.focus()}
      onInput={event => setTitle(event.currentTarget.value)}
      onBlur={() => onDone(null)}
      onKeyDown={event => {
        event.stopPropagation();
        if (event.key === 'Enter') {
          onDone(title);
        } else if (event.key === 'Escape') {
          onDone(null);
        }
      }}
    />
  );
}

/** One run: what it is, how it stands, and what may be done with it. F2 renames it, Delete puts it in the trash. */
export function Row({
  trans,
  row,
  now,
  compared,
  writable,
  onOpen,
  onResume,
  onCompare,
  onRename,
  onTrash
}: IRowProps) {
  const [renaming, setRenaming] = useState(false);
  const { mark, word, tone } = standingOf(row, trans);
  const best = bestOf(row, trans);
  const marked = compared !== null && compared.store === row.store && compared.run_id === row.run_id;
  const picking = compared !== null && !marked;
  const compareLabel = marked
    ? trans.__('Do not compare')
    : picking
      ? trans.__('Compare with %1', compared.title)
      : trans.__('Compare…');
  const button = (icon: keyof typeof ICONS, label: string, onClick: () => void, pressed?: boolean) => (
    <button
      type="button"
      class="cg-button cg-run-action"
      aria-pressed={pressed}
      aria-label={`${label} (${row.title})`}
      title={label}
      onClick={onClick}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={ICONS[icon]} />
      </svg>
    </button>
  );
  return (
    <li
      class={`cg-run${row.status === 'review' ? ' cg-run-waits' : ''}${marked ? ' cg-run-marked' : ''}`}
      onKeyDown={event => {
        if (!writable || !(event.target instanceof HTMLElement) || event.target.closest('input')) {
          return;
        }
        if (event.key === 'F2') {
          setRenaming(true);
        } else if (event.key === 'Delete') {
          onTrash(row, !row.trashed);
        } else {
          return;
        }
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      {renaming ? (
        <Rename
          label={trans.__('New name of %1', row.title)}
          before={row.title}
          onDone={title => {
            setRenaming(false);
            if (title !== null && title !== row.title) {
              onRename(row, title);
            }
          }}
        />
      ) : (
        <button
          type="button"
          class="cg-run-open"
          title={`${row.title}\n${row.problem} · ${row.run_id}\n${trans.__('in %1', row.store)}\n${new Date(row.updated_at * 1000).toLocaleString()}`}
          onClick={() => (picking ? onCompare(row) : onOpen(row))}
        >
          <span class={`cg-run-mark cg-run-${row.status} cg-tone-${tone}`} aria-hidden="true">
            {mark}
          </span>
          <span class="cg-run-title">{row.title}</span>
          <span class="cg-run-when cg-muted">{ago(row.updated_at, now)}</span>
          <span class="cg-run-facts">
            <span class={`cg-tone-${tone}`}>{word}</span>
            {best && <span> · {best}</span>}
            <span class="cg-muted">
              {' '}
              · {row.gpu}
              {row.device && row.device !== 'auto' && ` · ${trans.__('on %1', row.device)}`}
            </span>
          </span>
        </button>
      )}
      <div class="cg-run-actions">
        {row.trashed ? (
          writable && button('back', trans.__('Put back'), () => onTrash(row, false))
        ) : (
          <>
            {(writable || row.notebook) &&
              button('go', row.notebook ? trans.__('Go to its notebook') : trans.__('Resume'), () =>
                onResume(row)
              )}
            {button('compare', compareLabel, () => onCompare(row), marked)}
            {writable && button('rename', trans.__('Rename'), () => setRenaming(true))}
            {writable && button('trash', trans.__('Trash'), () => onTrash(row, true))}
          </>
        )}
      </div>
    </li>
  );
}
