import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TranslationBundle } from '@jupyterlab/translation';
import { useNow } from '../run/hooks';
import type { RunList, RunRow } from '../schema';
import { ALL, Filters, queryOf, type IWanted } from './filters';
import { Row } from './row';
import type { IRunServer } from './server';
import { keyOf } from './words';

const PAGE = 100;
interface IRunsProps {
  trans: TranslationBundle;
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

function told(error: unknown, trans: TranslationBundle): string {
  const { response, message } = error as { response?: Response; message?: string };
  if (response?.status === 404 && !message) {
    return trans.__(
      'This server does not have the extension of cutegen-lab. Run `jupyter server extension enable cutegen_lab.server` where it is installed, and start the server again.'
    );
  }
  return message ?? String(error);
}

/** The runs of all stores, live: searched, filtered, opened, resumed, compared, renamed, put in the trash. */
export function Runs({
  trans,
  server,
  folder,
  version,
  live,
  onOpen,
  onResume,
  onCompare,
  onNew
}: IRunsProps) {
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
    const query = { ...queryOf(wanted), trashed, folder, limit };
    try {
      const answer = await server.list(query);
      if (turn === asked.current) {
        setFound(answer);
        setError('');
      }
    } catch (failure) {
      if (turn === asked.current) {
        setError(told(failure, trans));
      }
    }
  }, [server, folder, wanted, trashed, limit, trans]);
  useEffect(() => {
    void refresh();
  }, [refresh, version]);

  const act = async (what: () => Promise<unknown>, done: IUndo | null) => {
    try {
      await what();
      setUndo(done);
    } catch (failure) {
      setUndo({ text: told(failure, trans), undo: null });
    }
    await refresh();
  };
  const trash = (row: RunRow, away: boolean) => {
    const at = (found?.rows ?? []).findIndex(each => keyOf(each) === keyOf(row));
    focusAt.current = list.current?.contains(document.activeElement) ? at : null;
    void act(() => server.change(row, { trashed: away }), {
      text: away
        ? trans.__('%1 is in the trash.', row.title)
        : trans.__('%1 is back in the list.', row.title),
      undo: () => server.change(row, { trashed: !away })
    });
  };
  const rename = (row: RunRow, title: string) => {
    const before = row.title === row.problem ? '' : row.title;
    void act(() => server.change(row, { title }), {
      text: trans.__('Renamed to %1.', title || row.problem),
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
  const choose = (given: IWanted) => {
    setLimit(PAGE);
    setWanted(given);
  };
  const filtered = JSON.stringify(wanted) !== JSON.stringify(ALL);

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
    <article class="cg-root cg-runs" aria-label={trans.__('CuTeGen runs')}>
      <header class="cg-runs-head">
        <div class="cg-row">
          <h2>{trashed ? trans.__('Trash') : trans.__('Runs')}</h2>
          {found && <span class="cg-muted">{found.total}</span>}
          <span class="cg-spacer" />
          <button type="button" class="cg-button cg-small" onClick={onNew}>
            {trans.__('New run')}
          </button>
        </div>
        <Filters trans={trans} wanted={wanted} found={found} onChange={choose} />
      </header>
      {error && (
        <div class="cg-note cg-note-bad" role="alert">
          <p>{error}</p>
          <button type="button" class="cg-button cg-small" onClick={() => void refresh()}>
            {trans.__('Try again')}
          </button>
        </div>
      )}
      {!live && !error && found && (
        <p class="cg-note" role="status">
          {trans.__('Changes are not heard of at the moment; trying again.')}
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
          {trans.__('Choose the run to compare %1 with.', compared.title)}{' '}
          <button type="button" class="cg-button cg-small" onClick={() => setCompared(null)}>
            {trans.__('Cancel')}
          </button>
        </p>
      )}
      <ol
        class="cg-runs-list"
        ref={list}
        onKeyDown={onArrow}
        aria-label={trashed ? trans.__('Runs in the trash') : trans.__('Runs')}
      >
        {found?.rows.map(row => (
          <Row
            key={keyOf(row)}
            trans={trans}
            row={row}
            now={now}
            compared={compared}
            writable={found.writable}
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
              {limit < 500
                ? trans.__('%1 more', found.total - found.rows.length)
                : trans.__('Search to see older runs')}
            </button>
          </li>
        )}
      </ol>
      {found?.rows.length === 0 && (
        <div class="cg-runs-empty">
          {filtered ? (
            <>
              <p>{trans.__('No run fits.')}</p>
              <button type="button" class="cg-button" onClick={() => setWanted(ALL)}>
                {trans.__('Show all')}
              </button>
            </>
          ) : trashed ? (
            <p>{trans.__('The trash is empty.')}</p>
          ) : (
            <>
              <p>
                {folder ? trans.__('No runs yet below %1.', folder) : trans.__('No runs yet.')}{' '}
                {trans.__(
                  'A run starts in a notebook, from a PyTorch function: begin one here, or right-click a .py file and choose “Make a kernel of this”.'
                )}
              </p>
              <button type="button" class="cg-button cg-primary" onClick={onNew}>
                {trans.__('New run')}
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
            {trans.__('Undo')}
          </button>
        )}
        <span class="cg-spacer" />
        {(trashed || (found?.trashed ?? 0) > 0) && (
          <button type="button" class="cg-button cg-small" onClick={() => setTrashed(!trashed)}>
            {trashed ? trans.__('Back to runs') : trans.__('Trash (%1)', found?.trashed ?? 0)}
          </button>
        )}
      </footer>
    </article>
  );
}
