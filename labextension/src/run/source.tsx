import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { changesSince } from '../code/changes';
import { barredLines, heatGutter, stallGutter } from '../code/marks';
import { Pane } from '../code/pane';
import { saidLines } from '../code/said';
import type { CandidateView, HeatColumn, ListingLine } from '../schema';
import { ConfigChanges } from './comparison';
import { saidOfLines } from './named';
import { attached, textOf, useMachineCode } from './machine';
import { NoteForm, Notes, shownLines, useNoting } from './notes';
import { buttonOf, type Ask, type Look, type Verb } from './verbs';
import { trans } from './words';

type Which = 'cute' | 'ptx' | 'sass';

const linesOf = (lines: readonly ListingLine[], source: number) =>
  source > 0 ? lines.flatMap((each, index) => (each.line === source ? [index + 1] : [])) : [];

interface IListingProps {
  which: 'ptx' | 'sass';
  lines: readonly ListingLine[];
  source: number;
  reveal: number;
  onHover: (line: number | null) => void;
  onPick: (line: number) => void;
}

function Listing({ which, lines, source, reveal, onHover, onPick }: IListingProps) {
  const text = useMemo(() => textOf(lines), [lines]);
  const linked = useMemo(() => linesOf(lines, source), [lines, source]);
  const extra = useMemo(() => {
    const stalls = lines.flatMap(({ stall }, index) => (stall === null ? [] : [[index + 1, stall] as const]));
    return stalls.length ? stallGutter(new Map(stalls)) : [];
  }, [lines]);
  const from = (line: number | null) => (line === null ? null : (lines[line - 1]?.line ?? 0));
  return (
    <Pane
      label={which.toUpperCase()}
      text={text}
      language={which}
      extra={extra}
      linked={linked}
      reveal={reveal}
      onHover={line => onHover(from(line))}
      onPick={line => onPick(from(line) ?? 0)}
    />
  );
}

/** One more time that each text but `from` is to scroll to the line. */
function revealed(now: Record<Which, number>, from?: Which): Record<Which, number> {
  const count = (which: Which) => now[which] + Number(which !== from);
  return { cute: count('cute'), ptx: count('ptx'), sass: count('sass') };
}

interface ISourceProps {
  candidate: CandidateView;
  /** The parent's text, as that one is shown; null without a parent. */
  before: string | null;
  /** Whether the text shown has parameters; null where the candidate has one text only. */
  tunable: boolean | null;
  onTunable: (tunable: boolean) => void;
  /** Whether the run's provider are the templates. */
  templates: boolean;
  /** What the analyst may do now. */
  verbs: readonly Verb[];
  /** null where no kernel hears the view. */
  ask: Ask | null;
  /** null where nobody can be asked. */
  look: Look | null;
  /** A line that is asked for elsewhere, and how often one was. */
  asked: { line: number; count: number };
  /** A line whose diagnostics, evidence and notes are marked. */
  pointed: number;
  /** Shows what is said of a line. */
  onPoint: (line: number) => void;
}

/**
 * A candidate's source as a profiler shows it: what changed since its parent or the whole text, what each line costs,
 * and PTX and SASS beside it, with the lines that belong together marked in all of them.
 */
export function Source(props: ISourceProps) {
  const { candidate, before, tunable, onTunable, verbs, ask, look, asked, pointed, onPoint } = props;
  const [whole, setWhole] = useState(false);
  const [heat, setHeat] = useState<string | null>(null); // the label of a column, '' for none, null for the first
  const [beside, setBeside] = useState<ReadonlySet<'ptx' | 'sass'>>(new Set());
  const [line, setLine] = useState(0); // of the source
  const [picked, setPicked] = useState(0);
  const [reveals, setReveals] = useState({ cute: 0, ptx: 0, sass: 0 });
  const section = useRef<HTMLElement>(null);
  const same = tunable === false ? (candidate.specialised?.same_lines ?? null) : null;
  const noting = useNoting(candidate, same, ask, verbs);
  const reveal = (at: number) => {
    setWhole(true);
    setPicked(at);
    setLine(at);
    setReveals(now => revealed(now));
    section.current?.scrollIntoView({ block: 'nearest' });
  };

  const hasDiff = candidate.diff.length > 0 && before !== null;
  const showDiff = hasDiff && !whole;
  const counted = (kind: 'added' | 'removed') => candidate.diff.filter(each => each.kind === kind).length;
  const columns = candidate.heat;
  const column: HeatColumn | undefined =
    heat === null ? columns[0] : columns.find(each => each.label === heat);
  const { loading, code, error } = useMachineCode(candidate.id, tunable !== false, beside.size > 0, look);

  const missing = beside.has('sass') ? (code?.sass_note ?? '') : '';

  const pick = (from: Which, at: number) => {
    setPicked(at);
    setLine(at);
    setReveals(now => revealed(now, from));
  };
  const hover = (at: number | null) => setLine(at ?? picked);
  useEffect(() => {
    if (asked.count > 0) {
      reveal(asked.line);
    }
  }, [asked]);

  const bars = useMemo(
    () =>
      candidate.notes.flatMap(note => {
        const lines = shownLines(note, same);
        return lines === null ? [] : [{ ...lines, class: `cg-cm-${note.pin ? 'pin' : 'comment'}` }];
      }),
    [candidate.notes, same]
  );
  const said = useMemo(() => saidOfLines(candidate, same), [candidate, same]);
  const extra = useMemo(
    () => [
      column ? heatGutter(column, columns) : [],
      showDiff ? changesSince(before) : [],
      barredLines(bars),
      saidLines(said, onPoint)
    ],
    [column, columns, showDiff, before, bars, said, onPoint]
  );
  const linked = useMemo(() => (line > 0 ? [line] : []), [line]);
  const toggle = (which: 'ptx' | 'sass') => {
    const next = new Set(beside);
    if (!next.delete(which)) {
      next.add(which);
    }
    setBeside(next);
  };
  return (
    <section class="cg-source" aria-label={trans.__('Source')} ref={section}>
      <header class="cg-section-head">
        <h4>
          {!showDiff
            ? trans.__('Source')
            : candidate.parent_id === null
              ? trans.__('Changes from its parent')
              : trans.__('Changes from %1', candidate.parent_id)}
        </h4>
        {hasDiff && (
          <span class="cg-diffstat">
            <span class="cg-tone-good">+{counted('added')}</span>{' '}
            <span class="cg-tone-bad">−{counted('removed')}</span>
            <span class="cg-hidden"> {trans.__('lines added and removed')}</span>
          </span>
        )}
        <span class="cg-spacer" />
        {columns.length > 0 && (
          <label class="cg-muted">
            {trans.__('Heat')}{' '}
            <select
              class="cg-select"
              value={column?.label ?? ''}
              title={
                column
                  ? trans.__("Each line's share of %1", column.unit)
                  : trans.__('No figures beside the lines')
              }
              onChange={event => setHeat(event.currentTarget.value)}
            >
              {columns.map(each => (
                <option key={each.label} value={each.label}>
                  {each.label}
                </option>
              ))}
              <option value="">{trans.__('None')}</option>
            </select>
          </label>
        )}
        {ask !== null && (
          <span class="cg-choice" role="group" aria-label={trans.__('Comments and pins')}>
            {noting.kinds
              .filter(kind => verbs.includes(kind))
              .map(kind => (
                <button
                  key={kind}
                  type="button"
                  class="cg-button cg-small"
                  data-verb={kind}
                  aria-expanded={noting.open === kind}
                  title={buttonOf(kind, candidate.id).help}
                  onClick={() => noting.toggle(kind)}
                >
                  {buttonOf(kind, candidate.id).label}
                </button>
              ))}
          </span>
        )}
        {tunable !== null && (
          <span class="cg-choice" role="group" aria-label={trans.__('Which text')}>
            {[false, true].map(general => (
              <button
                key={String(general)}
                type="button"
                class="cg-button cg-small"
                aria-pressed={tunable === general}
                title={
                  general
                    ? trans.__('The text with its parameters, which a search tunes and an edit starts from')
                    : trans.__('The text for this config alone: it compiles to the same machine code')
                }
                onClick={() => onTunable(general)}
              >
                {general ? trans.__('Tunable') : trans.__('Specialised')}
              </button>
            ))}
          </span>
        )}
        <span class="cg-choice" role="group" aria-label={trans.__('Beside the source')}>
          {(['ptx', 'sass'] as const).map(which => (
            <button
              key={which}
              type="button"
              class="cg-button cg-small"
              aria-pressed={beside.has(which)}
              disabled={look === null}
              title={
                look === null
                  ? attached()
                  : trans.__('%1 beside the source, line by line', which.toUpperCase())
              }
              onClick={() => toggle(which)}
            >
              {which.toUpperCase()}
            </button>
          ))}
        </span>
        {hasDiff && (
          <button
            type="button"
            class="cg-button cg-small"
            aria-pressed={whole}
            onClick={() => setWhole(!whole)}
          >
            {whole ? trans.__('Show changes') : trans.__('Show full source')}
          </button>
        )}
      </header>
      {showDiff && candidate.config_changes.length > 0 && (
        <ConfigChanges changes={candidate.config_changes} />
      )}
      {(loading || error !== '' || missing !== '') && (
        <p class={error ? 'cg-note cg-note-bad' : 'cg-note'} role="status">
          {loading ? trans.__('Reading the machine code…') : error || trans.__('No SASS: %1', missing)}
        </p>
      )}
      {noting.open !== null && (
        <NoteForm candidate={candidate} noting={noting} same={same} templates={props.templates} />
      )}
      <Notes notes={candidate.notes} same={same} noting={noting} onLine={reveal} pointed={pointed} />
      <div class="cg-code" data-panes={1 + beside.size}>
        <Pane
          label={trans.__('Source of %1', candidate.id)}
          text={candidate.source}
          language="python"
          extra={extra}
          linked={linked}
          reveal={reveals.cute}
          onHover={hover}
          onPick={at => pick('cute', at)}
          onSelect={noting.select}
        />
        {code !== null &&
          (['ptx', 'sass'] as const)
            .filter(which => beside.has(which) && code[which].length > 0)
            .map(which => (
              <Listing
                key={which}
                which={which}
                lines={code[which]}
                source={line}
                reveal={reveals[which]}
                onHover={hover}
                onPick={at => pick(which, at)}
              />
            ))}
      </div>
    </section>
  );
}
