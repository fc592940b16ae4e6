import { useMemo, useRef, useState } from 'preact/hooks';
import type { RunView } from '../schema';
import { Log, Problem, Provenance } from './about';
import { Actions } from './actions';
import { Away, type IAway } from './away';
import { Export } from './export';
import { Cost } from './cost';
import { candidates, statusLine } from './format';
import { useHostShortcuts, useKeptFocus, useLatchedHeight } from './hooks';
import { Keys } from './help';
import { Ideas } from './ideas';
import { commandOf, currentKeys, PRESSED } from './keys';
import { lineage } from './layout';
import { Lineage } from './lineage';
import { LOGO_TILE, LOGO_TILES } from './logo';
import { ScopeNote } from './scope';
import { COMPARE, Tabs } from './tabs';
import { Timeline } from './timeline';
import { Trends } from './trend';
import type { IAnswer, IBackend } from './verbs';
import { trans } from './words';

function Logo() {
  return (
    <svg class="cg-logo" viewBox="0 0 16 16" aria-hidden="true">
      {LOGO_TILES.map(({ x, y, lit }) => (
        <rect
          key={`${x} ${y}`}
          class={lit ? 'cg-lit' : ''}
          x={x}
          y={y}
          width={LOGO_TILE}
          height={LOGO_TILE}
          rx={0.8}
        />
      ))}
    </svg>
  );
}

function Header({ view, help, onHelp }: { view: RunView; help: boolean; onHelp: () => void }) {
  const { word, detail, tone } = statusLine(view);
  const { settings } = view;
  return (
    <header class="cg-header">
      <Logo />
      <h2>{view.problem.name}</h2>
      <span class={`cg-status cg-status-${view.status} cg-tone-${tone}`} role="status" aria-live="polite">
        <b>{word}</b>
        {detail && ` · ${detail}`}
      </span>
      <span class="cg-spacer" />
      <Cost cost={view.cost} />
      <span class="cg-muted">
        {settings.provider}
        {settings.model && ` (${settings.model})`} · {trans.__('%1 for %2', settings.arch, settings.gpu)} ·{' '}
        {settings.device !== 'auto' && `${trans.__('on %1', settings.device)} · `}
        {candidates(view.candidates.length, settings.max_steps)}
        {settings.auto && ` · ${trans.__('auto')}`}
      </span>
      <button
        type="button"
        class="cg-button cg-small"
        aria-expanded={help}
        title={trans.__('What single keys do here')}
        onClick={onHelp}
      >
        {trans.__('Keys')}
      </button>
    </header>
  );
}

/** Text in which what stands between backticks is to be typed. */
function withCode(text: string) {
  return text.split('`').map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part));
}

interface IRunPanelProps {
  view: RunView;
  /** What stands behind it; null for a saved run. */
  backend: IBackend | null;
  /** A live view may be about to take this one's place: too early to say that no kernel is attached. */
  awaited?: boolean;
  /** Where it is shown from the store: how to get to where it can be answered. */
  away?: IAway | null;
}

function notice(view: RunView, attached: boolean): string {
  if (!attached && view.status === 'done') {
    const shown = view.incumbent_id ?? view.candidates.at(-1)?.id ?? '';
    return (
      shown &&
      trans.__(
        'The run as it ended. Where it is stored, `%cutegen branch %1 --run %2` goes on from %1.',
        shown,
        view.run_id
      )
    );
  }
  if (!attached) {
    return trans.__(
      'A saved run, as it stood. Where it is stored, `%cutegen resume %1` takes it up again.',
      view.run_id
    );
  }
  if (view.status === 'interrupted') {
    return trans.__('No process is driving this run. Resume goes on from the last recorded event.');
  }
  return '';
}

/**
 * A whole run: where it stands, its candidates, the evidence for the selected one, and what may be done now. The
 * selection follows the run until the reader picks another candidate, and again once they return to the current one or
 * answer.
 */
export function RunPanel({ view, backend, awaited = false, away = null }: IRunPanelProps) {
  const [picked, setPicked] = useState<string | null>(null);
  const [tab, setTab] = useState('');
  const [help, setHelp] = useState(false);
  const [comparedId, setComparedId] = useState<string | null>(null);
  const find = (id: string | null) => view.candidates.find(candidate => candidate.id === id) ?? null;
  const lead =
    view.status === 'done'
      ? (find(view.incumbent_id) ?? find(view.current_id))
      : (find(view.current_id) ?? find(view.incumbent_id));
  const selected = find(picked) ?? lead ?? view.candidates.at(-1) ?? null;
  const compare = (id: string | null) => {
    setComparedId(id);
    setTab(COMPARE);
  };
  const nodes = useMemo(
    () => lineage(view.candidates, view.incumbent_id),
    [view.candidates, view.incumbent_id]
  );
  const select = (id: string) => setPicked(id === lead?.id ? null : id);
  const ask = backend?.ask ?? null;
  const look = backend?.look ?? null;
  const answer = useMemo(
    () =>
      ask &&
      (async (given: IAnswer) => {
        await ask(given);
        setPicked(null);
      }),
    [ask]
  );
  const root = useRef<HTMLElement>(null);
  useHostShortcuts(root);
  useKeptFocus(root);
  useLatchedHeight(root);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && help) {
      setHelp(false);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const command = commandOf(event, currentKeys());
    if (command === null) {
      return;
    }
    if (command === 'next' || command === 'previous') {
      const order = nodes.map(node => node.candidate.id);
      const to = order.indexOf(selected?.id ?? '') + (command === 'next' ? 1 : -1);
      const id = order[to];
      if (id !== undefined) {
        select(id);
      }
    } else if (command === 'help') {
      setHelp(!help);
    } else if (command === 'compare') {
      const item =
        event.target instanceof Element ? event.target.closest<HTMLElement>('[role=treeitem]') : null;
      compare(item?.dataset.candidate ?? comparedId);
    } else {
      const buttons = PRESSED[command].map(verb =>
        root.current?.querySelector<HTMLButtonElement>(`button[data-verb=${verb}]:not([data-other])`)
      );
      buttons.find(Boolean)?.click();
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const note = awaited || away !== null ? '' : notice(view, ask !== null);
  // Once it is written the attempt is a candidate, and its steps show there. An edit is written from the start.
  const [generate] = view.timeline;
  const edited = generate?.status === 'skipped' && generate.detail === '';
  const writing = view.status !== 'done' && generate !== undefined && generate.status !== 'done' && !edited;
  return (
    <article
      class="cg-root"
      ref={root}
      tabIndex={-1}
      aria-label={trans.__('Run of %1', view.problem.name)}
      data-lm-suppress-shortcuts="true"
      onKeyDown={onKeyDown}
    >
      <Header view={view} help={help} onHelp={() => setHelp(!help)} />
      {help && <Keys onClose={() => setHelp(false)} />}
      {note && <p class="cg-note">{withCode(note)}</p>}
      {view.note && <p class={`cg-note${view.outcome === 'failed' ? ' cg-note-bad' : ''}`}>{view.note}</p>}
      <ScopeNote scope={view.scope} status={view.status} />
      {writing && (
        <div class="cg-attempt">
          <h4>{trans.__('Next candidate')}</h4>
          <Timeline
            steps={view.timeline}
            label={trans.__('Steps of the next candidate')}
            live={ask !== null}
          />
        </div>
      )}
      {selected !== null && !(writing && picked === null) && (
        <div class="cg-attempt">
          <h4>{selected.id}</h4>
          <Timeline
            steps={selected.steps}
            label={trans.__('Steps of %1', selected.id)}
            live={ask !== null}
            awaited={view.status === 'review' && view.current_id === selected.id}
          />
        </div>
      )}
      {away !== null && <Away view={view} away={away} />}
      {answer !== null && view.verbs.length > 0 && (
        <Actions view={view} selected={selected} ask={answer} look={look} onSelect={select} />
      )}
      <div class="cg-body">
        <aside class="cg-side">
          <Lineage
            view={view}
            nodes={nodes}
            selectedId={selected?.id ?? null}
            onSelect={select}
            onCompare={compare}
          />
          <Trends trend={view.trend} solUs={view.sol.time_us} selectedId={selected?.id ?? null} />
        </aside>
        <main class="cg-main">
          {selected === null ? (
            <p class="cg-empty">
              {view.status === 'done'
                ? trans.__('The run ended before it had a candidate.')
                : trans.__('The first candidate shows here as soon as it is written.')}
            </p>
          ) : (
            <Tabs
              view={view}
              candidate={selected}
              parent={find(selected.parent_id)}
              compared={find(comparedId)}
              onCompare={setComparedId}
              ask={ask}
              look={look}
              selectedId={tab}
              onSelect={setTab}
            />
          )}
          <footer class="cg-footer">
            {look !== null && selected !== null && <Export key={selected.id} id={selected.id} look={look} />}
            <Ideas ideas={view.ideas} />
            <Log lines={view.log} />
            <Problem view={view} />
            <Provenance candidate={selected} versions={view.versions} />
          </footer>
        </main>
      </div>
    </article>
  );
}
