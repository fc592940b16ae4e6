import { useState } from 'preact/hooks';
import type { CandidateView, NoteView } from '../schema';
import { pointedAt } from './pointed';
import { Prompt, useSending } from './sending';
import { buttonOf, type Ask, type Verb } from './verbs';
import { trans } from './words';

type Kind = 'comment' | 'pin';

interface ILines {
  first: number;
  last: number;
}

/** Lines of a candidate's own text and those of the text that is shown; null where both are the same text. */
export type Same = Readonly<Record<string, number>> | null;

const MARKS: Record<NoteView['state'], string> = { open: '', gone: '', kept: '✓', broken: '✕' };

function stateWord(state: NoteView['state']): string {
  switch (state) {
    case 'open':
      return trans.__('open');
    case 'gone':
      return trans.__('these lines are gone');
    case 'kept':
      return trans.__('kept');
    case 'broken':
      return trans.__('broken');
  }
}

/** Where a note is in the text that is shown; null where it is nowhere in it. */
export function shownLines({ first, last }: ILines, same: Same): ILines | null {
  if (same === null) {
    return first > 0 ? { first, last } : null;
  }
  const there = Object.entries(same).filter(([own]) => Number(own) >= first && Number(own) <= last);
  const lines = there.map(([, line]) => line);
  return lines.length ? { first: Math.min(...lines), last: Math.max(...lines) } : null;
}

/** The lines of the candidate's own text behind those that are shown; null where they have none. */
export function ownLines({ first, last }: ILines, same: Same): ILines | null {
  if (same === null) {
    return { first, last };
  }
  const there = Object.entries(same).filter(([, line]) => line >= first && line <= last);
  const lines = there.map(([own]) => Number(own));
  return lines.length ? { first: Math.min(...lines), last: Math.max(...lines) } : null;
}

/** The lines of the candidate's own text between which lines of the specialised text are that it does not have. */
export function linesAround({ first, last }: ILines, same: Readonly<Record<string, number>>): ILines | null {
  const pairs = Object.entries(same).map(([own, line]) => ({ own: Number(own), line }));
  const above = pairs.filter(each => each.line < first).map(each => each.own);
  const below = pairs.filter(each => each.line > last).map(each => each.own);
  const found = [
    ...(above.length ? [Math.max(...above)] : []),
    ...(below.length ? [Math.min(...below)] : [])
  ];
  return found.length ? { first: Math.min(...found), last: Math.max(...found) } : null;
}

/** Characters of a quoted text. */
const QUOTED = 200;

/** Where a comment or pin on shown lines is, and what a comment quotes of them if it is only near them. */
function placeOf(kind: Kind, lines: ILines, same: Same, text: string): { at: ILines; quote: string } | null {
  const own = ownLines(lines, same);
  if (own !== null || same === null || kind === 'pin') {
    return own && { at: own, quote: '' };
  }
  const near = linesAround(lines, same);
  const quote = text
    .split('\n')
    .slice(lines.first - 1, lines.last)
    .map(each => each.trim())
    .join(' ');
  return near && { at: near, quote: quote.length > QUOTED ? `${quote.slice(0, QUOTED)}…` : quote };
}

const NO_KERNEL: Ask = () => Promise.reject(new Error(trans.__('No kernel is attached.')));

/** The selected lines, which form is open, and what the kernel says. */
export function useNoting(candidate: CandidateView, same: Same, ask: Ask | null, verbs: readonly Verb[]) {
  const [open, setOpen] = useState<Kind | null>(null);
  const [lines, setLines] = useState<ILines>({ first: 1, last: 1 });
  const { busy, message, failed, send } = useSending(ask ?? NO_KERNEL);
  const say = (verb: Kind | 'lift', target: string, text = '') =>
    void send({ verb, candidate_id: candidate.id, target_id: target, text }).then(taken => {
      if (taken) {
        setOpen(null);
      }
    });
  return {
    kinds: ['comment', 'pin'] as const,
    open,
    lines,
    busy,
    message,
    failed,
    canLift: ask !== null && verbs.includes('lift'),
    toggle: (kind: Kind) => setOpen(open === kind ? null : kind),
    close: () => setOpen(null),
    select: (first: number, last: number) => setLines({ first, last }),
    lift: (id: string) => say('lift', id),
    /** On `name`, or on the selected lines; false where these have no lines in the candidate's own text. */
    note: (kind: Kind, name: string, text: string): boolean => {
      const place = name ? null : placeOf(kind, lines, same, candidate.source);
      if (!name && place === null) {
        return false;
      }
      const { at, quote = '' } = place ?? {};
      const words = quote ? `${text} (of the specialised text: ${quote})` : text;
      say(kind, `${candidate.id}:${at === undefined ? name : `${at.first}-${at.last}`}`, words);
      return true;
    }
  };
}

type INoting = ReturnType<typeof useNoting>;

/** Names that a note can be on: parameters, functions, classes and what the module assigns. */
function namesOf({ config, source }: CandidateView): string[] {
  const defined = [...source.matchAll(/^(?:def|class) +(\w+)|^(\w+) *(?::[^=\n]*)?=(?!=)/gm)];
  return [
    ...new Set([...config.map(each => each.name), ...defined.map(found => found[1] ?? found[2] ?? '')])
  ];
}

interface INoteFormProps {
  candidate: CandidateView;
  noting: INoting;
  same: Same;
  /** Whether the run's provider are the templates. */
  templates: boolean;
}

/** What to note, and the analyst's words. */
export function NoteForm({ candidate, noting, same, templates }: INoteFormProps) {
  const kind = noting.open ?? 'comment';
  const [name, setName] = useState('');
  const [words, setWords] = useState('');
  const { first, last } = noting.lines;
  const count = candidate.source.split('\n').length;
  const place = placeOf(kind, noting.lines, same, candidate.source);
  const nowhere = name === '' && place === null;
  const number = (label: string, value: number, set: (line: number) => void) => (
    <input
      class="cg-input cg-line-number"
      type="number"
      aria-label={label}
      min={1}
      max={count}
      value={value}
      onInput={event => set(Math.min(count, Math.max(1, Number(event.currentTarget.value) || 1)))}
    />
  );
  return (
    <Prompt
      label={kind === 'pin' ? trans.__('Pin in %1', candidate.id) : trans.__('Comment on %1', candidate.id)}
      onCancel={noting.close}
    >
      <div class="cg-row">
        <label>
          {kind === 'pin' ? trans.__('Later candidates must not change') : trans.__('Comment on')}{' '}
          <select class="cg-select" value={name} onChange={event => setName(event.currentTarget.value)}>
            <option value="">{trans.__('lines')}</option>
            {namesOf(candidate).map(each => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        {name === '' && (
          <>
            {number(trans.__('First line'), first, line => noting.select(line, Math.max(line, last)))}
            <span aria-hidden="true">{trans.__('to')}</span>
            {number(trans.__('Last line'), last, line => noting.select(Math.min(first, line), line))}
            <span class="cg-muted">{trans.__('or select them in the source')}</span>
          </>
        )}
      </div>
      <label>
        {kind === 'pin'
          ? trans.__('Why (it goes to the provider, and may be empty)')
          : trans.__('What should be different there?')}
        <textarea
          class="cg-input"
          rows={2}
          value={words}
          ref={element => element?.focus()}
          onInput={event => setWords(event.currentTarget.value)}
        />
      </label>
      {nowhere && (
        <p class="cg-tone-warn" role="status">
          {trans.__(
            'These lines are of the specialised text alone: choose others, or show the tunable text.'
          )}
        </p>
      )}
      {name === '' && place?.quote && (
        <p class="cg-muted" role="status">
          {trans.__(
            'These lines are of the specialised text alone: the comment quotes them, and stands at lines %1–%2 of the tunable text.',
            place.at.first,
            place.at.last
          )}
        </p>
      )}
      {templates && kind === 'comment' && (
        <p class="cg-muted">
          {trans.__('Templates read no comments: it stays with the run. They heed pins on parameters.')}
        </p>
      )}
      <div class="cg-row">
        <button
          type="button"
          class="cg-button cg-primary"
          disabled={noting.busy || nowhere || (kind === 'comment' && words.trim() === '')}
          onClick={() => noting.note(kind, name, words.trim())}
        >
          {kind === 'pin' ? trans.__('Pin') : trans.__('Comment')}
        </button>
        <button type="button" class="cg-button" onClick={noting.close}>
          {trans.__('Cancel')}
        </button>
      </div>
    </Prompt>
  );
}

interface INotesProps {
  notes: readonly NoteView[];
  same: Same;
  noting: INoting;
  onLine: (line: number) => void;
  /** A line of the source: what is on it is marked. */
  pointed: number;
}

/** Comments and pins, with what became of each in this candidate. */
export function Notes({ notes, same, noting, onLine, pointed }: INotesProps) {
  return (
    <>
      {noting.message && (
        <p
          class={noting.failed ? 'cg-note cg-note-bad' : 'cg-note'}
          role={noting.failed ? 'alert' : 'status'}
        >
          {noting.message}
        </p>
      )}
      {notes.length > 0 && (
        <ul class="cg-notes" aria-label={trans.__('Comments and pins')}>
          {notes.map(note => {
            const lines = shownLines(note, same);
            const what = note.what.replaceAll('`', '');
            return (
              <li
                key={note.id}
                class={`cg-noted cg-noted-${note.state} ${pointedAt(lines?.first === pointed)}`}
                tabIndex={-1}
              >
                <span class="cg-basis">{note.pin ? trans.__('pin') : trans.__('comment')}</span>{' '}
                {lines === null ? (
                  what
                ) : (
                  <button type="button" class="cg-link" onClick={() => onLine(lines.first)}>
                    {what}
                  </button>
                )}
                {!note.quote.includes('\n') && <code>{note.quote.trim()}</code>}
                <b
                  class={
                    note.state === 'broken' ? 'cg-tone-bad' : note.state === 'kept' ? 'cg-tone-good' : ''
                  }
                >
                  {MARKS[note.state] && <span aria-hidden="true">{MARKS[note.state]} </span>}
                  {stateWord(note.state)}
                </b>
                {note.text && <span class="cg-noted-words">{note.text}</span>}
                {noting.canLift && (
                  <button
                    type="button"
                    class="cg-button cg-small"
                    disabled={noting.busy}
                    title={buttonOf('lift', note.id).help}
                    onClick={() => noting.lift(note.id)}
                  >
                    {note.pin ? trans.__('Lift') : trans.__('Remove')}
                    <span class="cg-hidden"> {note.id}</span>
                  </button>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}
