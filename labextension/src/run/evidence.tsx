import type { CandidateView, DiagnosticView, EvidenceRow } from '../schema';
import { basisWord, itStandsTo, slower } from './format';
import { linesOf, partsOf } from './named';
import { pointedAt } from './pointed';
import { trans } from './words';

const TONE_MARKS: Record<EvidenceRow['tone'], string> = { neutral: '', good: '✓', bad: '✕', warn: '!' };

type OnLine = (line: number) => void;

interface IPlacesProps<Item> {
  items: readonly Item[];
  /** Shows a line of the source. */
  onLine: OnLine;
  /** A line of the source: what names it is marked. */
  pointed: number;
}

function LineLink({ line, text, onLine }: { line: number; text: string; onLine: OnLine }) {
  return (
    <button type="button" class="cg-link" onClick={() => onLine(line)}>
      {text}
    </button>
  );
}

/** Text from Python in which each "line N" shows that line of the source. */
function WithLines({ text, onLine }: { text: string; onLine: OnLine }) {
  return (
    <>
      {partsOf(text).map(({ part, line }, index) =>
        line === null ? part : <LineLink key={index} line={line} text={part} onLine={onLine} />
      )}
    </>
  );
}

/** What is known about a candidate. "measured", "predicted" and "bound" stand beside every time. */
export function Evidence({ items, onLine, pointed }: IPlacesProps<EvidenceRow>) {
  return (
    <section class="cg-evidence" aria-label={trans.__('Evidence')}>
      <header class="cg-section-head">
        <h4>{trans.__('Evidence')}</h4>
      </header>
      {items.length === 0 ? (
        <p class="cg-empty">
          {trans.__('None yet: it comes in as the candidate is compiled, checked and timed.')}
        </p>
      ) : (
        <table>
          <tbody>
            {items.map(row => (
              <tr key={row.key} class={pointedAt(linesOf(row).includes(pointed))} tabIndex={-1}>
                <th scope="row">
                  <WithLines text={row.label} onLine={onLine} />
                </th>
                <td>
                  <span class={`cg-value cg-tone-${row.tone}`}>
                    {TONE_MARKS[row.tone] && <span aria-hidden="true">{TONE_MARKS[row.tone]} </span>}
                    <WithLines text={row.value} onLine={onLine} />
                  </span>
                  {row.basis && <span class={`cg-basis cg-basis-${row.basis}`}>{basisWord(row.basis)}</span>}
                  {row.detail && (
                    <span class="cg-detail">
                      <WithLines text={row.detail} onLine={onLine} />
                    </span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const SEVERITY_TONE: Record<DiagnosticView['severity'], EvidenceRow['tone']> = {
  error: 'bad',
  warning: 'warn',
  note: 'neutral'
};

function severityWord(severity: DiagnosticView['severity']): string {
  switch (severity) {
    case 'error':
      return trans.__('error');
    case 'warning':
      return trans.__('warning');
    case 'note':
      return trans.__('note');
  }
}

/** What the gate, the lint rules and the compiler say, each with its place and what to write instead. */
export function Diagnostics({ items, onLine, pointed }: IPlacesProps<DiagnosticView>) {
  if (items.length === 0) {
    return null;
  }
  return (
    <section class="cg-diagnostics" aria-label={trans.__('Diagnostics')}>
      <header class="cg-section-head">
        <h4>
          {trans.__('Diagnostics')} <span class="cg-count">{items.length}</span>
        </h4>
      </header>
      <ul>
        {items.map((item, index) => (
          <li
            key={index}
            class={`cg-diagnostic cg-diagnostic-${item.severity} ${pointedAt(item.line === pointed)}`}
            tabIndex={-1}
          >
            <p>
              <span class={`cg-severity cg-tone-${SEVERITY_TONE[item.severity]}`}>
                {severityWord(item.severity)}
              </span>{' '}
              {item.code && <code>{item.code}</code>}{' '}
              {item.line > 0 && (
                <LineLink line={item.line} text={trans.__('line %1', item.line)} onLine={onLine} />
              )}{' '}
              {item.message}
            </p>
            {item.excerpt && <pre tabIndex={0}>{item.excerpt}</pre>}
            {item.suggestion && <p class="cg-suggestion">{trans.__('Suggestion: %1', item.suggestion)}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ISummaryProps {
  candidate: CandidateView;
  /** What became of the expected effect: its time over its parent's; null until it is known. */
  ratio: number | null;
}

/** The title block of a candidate: what it is, why it was proposed, what it was to bring, how it ended. */
export function Summary({ candidate, ratio }: ISummaryProps) {
  const { config } = candidate;
  return (
    <header class="cg-summary">
      <h3>
        <span class="cg-id">{candidate.id}</span> {candidate.title}
      </h3>
      {candidate.reason && <p>{candidate.reason}</p>}
      {candidate.predicted_effect && (
        <p>
          <span class="cg-basis cg-basis-predicted">{trans.__('expected')}</span> {candidate.predicted_effect}
          {ratio !== null && (
            <>
              {' '}
              ·{' '}
              <b class={slower(ratio) ? 'cg-tone-bad' : ''}>{itStandsTo(ratio, candidate.parent_id ?? '')}</b>
            </>
          )}
        </p>
      )}
      <p class="cg-muted">
        {candidate.provider}
        {candidate.model && ` · ${candidate.model}`}
        {candidate.parent_id !== null && ` · ${trans.__('grown from %1', candidate.parent_id)}`}
        {candidate.answer && ` · ${candidate.answer}`}
      </p>
      {config.length > 0 && (
        <ul class="cg-config" aria-label={trans.__('Configuration')}>
          {config.map(({ name, value }) => (
            <li key={name}>
              <code>
                {name}={String(value)}
              </code>
            </li>
          ))}
        </ul>
      )}
    </header>
  );
}
