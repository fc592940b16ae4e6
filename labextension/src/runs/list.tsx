import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useNow } from '../run/hooks';
import type { RunList, RunRow } from '../schema';
import { Row } from './row';
import type { IListQuery, IRunServer } from './server';
import { keyOf } from './words';

const PAGE = 100;
const DAY = 86_400;
/** Filters by date, as days before now. */
const DATES: readonly [string, number][] = [
  ['Any time', 0],
  ['Last day', 1],
  ['Last week', 7],
  ['Last month', 30]
];
const STATES: readonly [string, string][] = [
  ['Any state', ''],
  ['Awaits you', 'review'],
  ['Running', 'running'],
  ['Interrupted', 'interrupted'],
  ['Done', 'done']
];

interface IRunsProps {
  server: IRunServer;
  /** Only runs below this folder; empty for all. */
  folder: string;
  /** Another value after each change of a run. */
  version: number;
  /** Whether changes are heard of. */
  live: boolean;
  onOpen: (row: RunRow) => void;
  onResume: (row: RunRow) => void;
  onCompare: (first: RunRow, second: RunRow) => void;
  onNew: () => void;
}

interface IUndo {
  text: string;
  undo: (() => Promise<unknown>) | null;
}

function told(error: unknown): string {
  const { response, message } = error as { response?: Response; message?: string };
  if (response?.status === 404 && !message) {
    return 'This server does not have the extension of cutegen-lab. Run `jupyter server extension enable cutegen_lab.server` where it is installed, and start the server again.';
  }
  return message ?? String(error);
}

function Choice({
  label,
  value,
  options,
  onChange
}: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}) {
  return (
    <select
      class="cg-input cg-filter"
      aria-label={label}
      value={value}
      onChange={event => onChange(event.currentTarget.value)}
    >
      {options.map(([text, each]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}

const ALL = { q: '', problem: '', status: '', gpu: '', days: '0' };

/** The runs of all stores, live: searched, filtered, opened, resumed, compared, renamed, put in the trash. */
export function Runs({ server, folder, version, live, onOpen, onResume, onCompare, onNew }: IRunsProps) {
  const [wanted, setWanted] = useState(ALL);
  const [trashed, setTrashed] = useState(false);
  const [limit, setLimit] = useState(PAGE);
  const [found, setFound] = useState<RunList | null>(null);
  const [error, setError] = useState('');
  const [undo, setUndo] = useState<IUndo | null>(null);
  const [compared, setCompared] = useState<RunRow | null>(null);
  const now = useNow(true);
  const asked = useRef(0);
  const list = useRef<HTMLOListElement>(null);

  // The row that had the focus is gone: the next one has it.
  const focusAt = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (focusAt.current !== null) {
      const buttons = list.current?.querySelectorAll<HTMLElement>('.cg-run-open') ?? [];
      buttons[Math.min(focusAt.current, buttons.length - 1)]?.focus();
      focusAt.current = null;
    }
  }, [found]);

  const refresh = useCallback(async () => {
    const turn = ++asked.current;
    const days = Number(wanted.days);
    const query: IListQuery = {
      q: wanted.q,
      problem: wanted.problem,
      status: wanted.status,
      gpu: wanted.gpu,
      ...(days ? { since: Date.now() / 1000 - days * DAY } : {}),
      trashed,
      folder,
      limit
    };
    try {
      const answer = await server.list(query);
      if (turn === asked.current) {
        setFound(answer);
        setError('');
      }
    } catch (failure) {
      if (turn === asked.current) {
        setError(told(failure));
      }
    }
  }, [server, folder, wanted, trashed, limit]);
  useEffect(() => {
    void refresh();
  }, [refresh, version]);

  const act = async (what: () => Promise<unknown>, done: IUndo | null) => {
    try {
      await what();
      setUndo(done);
    } catch (failure) {
      setUndo({ text: told(failure), undo: null });
    }
    await refresh();
  };
  const trash = (row: RunRow, away: boolean) => {
    const at = (found?.rows ?? []).findIndex(each => keyOf(each) === keyOf(row));
    focusAt.current = list.current?.contains(document.activeElement) ? at : null;
    void act(() => server.change(row, { trashed: away }), {
      text: away ? `${row.title} is in the trash.` : `${row.title} is back in the list.`,
      undo: () => server.change(row, { trashed: !away })
    });
  };
  const rename = (row: RunRow, title: string) => {
    const before = row.title === row.problem ? '' : row.title;
    void act(() => server.change(row, { title }), {
      text: `Renamed to ${title || row.problem}.`,
      undo: () => server.change(row, { title: before })
    });
  };
  const compare = (row: RunRow) => {
    if (compared === null) {
      setCompared(row);
    } else {
      setCompared(null);
      if (keyOf(compared) !== keyOf(row)) {
        onCompare(compared, row);
      }
    }
  };
  const choose = (name: keyof typeof ALL) => (value: string) => {
    setLimit(PAGE);
    setWanted(before => ({ ...before, [name]: value }));
  };
  const filtered = JSON.stringify(wanted) !== JSON.stringify(ALL);
  const named = (all: string, names: string[]) =>
    [[all, ''], ...names.map(each => [each, each])] as [string, string][];

  const onArrow = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const target = event.target instanceof Element ? event.target : null;
    if (step === 0 || target?.closest('input')) {
      return;
    }
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>('.cg-run-open') ?? [])];
    const at = buttons.indexOf(
      target?.closest('li')?.querySelector<HTMLElement>('.cg-run-open') as HTMLElement
    );
    buttons[Math.max(0, Math.min(at + step, buttons.length - 1))]?.focus();
    event.preventDefault();
  };

  return (
    <article class="cg-root cg-runs" aria-label="CuTeGen runs">
      <header class="cg-runs-head">
        <div class="cg-row">
          <h2>{trashed ? 'Trash' : 'Runs'}</h2>
          {found && <span class="cg-muted">{found.total}</span>}
          <span class="cg-spacer" />
          <button type="button" class="cg-button cg-small" onClick={onNew}>
            New run
          </button>
        </div>
        <input
          class="cg-input"
          type="search"
          placeholder="Search runs"
          aria-label="Search runs"
          value={wanted.q}
          onInput={event => choose('q')(event.currentTarget.value)}
        />
        <div class="cg-filters">
          <Choice label="State" value={wanted.status} options={STATES} onChange={choose('status')} />
          <Choice
            label="Date"
            value={wanted.days}
            options={DATES.map(([text, days]) => [text, String(days)])}
            onChange={choose('days')}
          />
          <Choice
            label="Problem"
            value={wanted.problem}
            options={named('Any problem', found?.problems ?? [])}
            onChange={choose('problem')}
          />
          <Choice
            label="GPU"
            value={wanted.gpu}
            options={named('Any GPU', found?.gpus ?? [])}
            onChange={choose('gpu')}
          />
        </div>
      </header>
      {error && (
        <div class="cg-note cg-note-bad" role="alert">
          <p>{error}</p>
          <button type="button" class="cg-button cg-small" onClick={() => void refresh()}>
            Try again
          </button>
        </div>
      )}
      {!live && !error && found && (
        <p class="cg-note" role="status">
          Changes are not heard of at the moment; trying again.
        </p>
      )}
      {found?.stores
        .filter(store => store.error)
        .map(store => (
          <p key={store.name} class="cg-note">
            {store.name}: {store.error}
          </p>
        ))}
      {compared && (
        <p class="cg-note" role="status">
          Choose the run to compare {compared.title} with.{' '}
          <button type="button" class="cg-button cg-small" onClick={() => setCompared(null)}>
            Cancel
          </button>
        </p>
      )}
      <ol
        class="cg-runs-list"
        ref={list}
        onKeyDown={onArrow}
        aria-label={trashed ? 'Runs in the trash' : 'Runs'}
      >
        {found?.rows.map(row => (
          <Row
            key={keyOf(row)}
            row={row}
            now={now}
            compared={compared}
            onOpen={onOpen}
            onResume={onResume}
            onCompare={compare}
            onRename={rename}
            onTrash={trash}
          />
        ))}
        {found && found.total > found.rows.length && (
          <li class="cg-runs-more">
            <button type="button" class="cg-button" onClick={() => setLimit(Math.min(500, limit + PAGE))}>
              {limit < 500 ? `${found.total - found.rows.length} more` : 'Search to see older runs'}
            </button>
          </li>
        )}
      </ol>
      {found?.rows.length === 0 && (
        <div class="cg-runs-empty">
          {filtered ? (
            <>
              <p>No run fits.</p>
              <button type="button" class="cg-button" onClick={() => setWanted(ALL)}>
                Show all
              </button>
            </>
          ) : trashed ? (
            <p>The trash is empty.</p>
          ) : (
            <>
              <p>
                No runs yet{folder && ` below ${folder}`}. A run starts in a notebook, from a PyTorch
                function: begin one here, or right-click a .py file and choose “Make a kernel of this”.
              </p>
              <button type="button" class="cg-button cg-primary" onClick={onNew}>
                New run
              </button>
            </>
          )}
        </div>
      )}
      <footer class="cg-runs-foot">
        <p role="status">{undo?.text}</p>
        {undo?.undo && (
          <button
            type="button"
            class="cg-button cg-small"
            onClick={() => void act(undo.undo ?? (() => Promise.resolve()), null)}
          >
            Undo
          </button>
        )}
        <span class="cg-spacer" />
        {(trashed || (found?.trashed ?? 0) > 0) && (
          <button type="button" class="cg-button cg-small" onClick={() => setTrashed(!trashed)}>
            {trashed ? 'Back to runs' : `Trash (${found?.trashed ?? 0})`}
          </button>
        )}
      </footer>
    </article>
  );
}
