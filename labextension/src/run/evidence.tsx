import type { CandidateView, DiagnosticView, EvidenceRow } from '../schema';

const TONE_MARKS: Record<EvidenceRow['tone'], string> = { neutral: '', good: '✓', bad: '✕', warn: '!' };

type OnLine = (line: number) => void;

/** Text in which each "line N" shows that line of the source. */
function WithLines({ text, onLine }: { text: string; onLine: OnLine }) {
  return (
    <>
      {text.split(/\b((?:L|l)ine \d+)\b/).map((part, index) =>
        index % 2 ? (
          <button key={index} type="button" class="cg-link" onClick={() => onLine(Number(part.slice(5)))}>
            {part}
          </button>
        ) : (
          part
        )
      )}
    </>
  );
}

/** What is known about a candidate. "measured", "predicted" and "bound" stand beside every time. */
export function Evidence({ rows, onLine }: { rows: readonly EvidenceRow[]; onLine: OnLine }) {
  return (
    <section class="cg-evidence" aria-label="Evidence">
      <header class="cg-section-head">
        <h4>Evidence</h4>
      </header>
      {rows.length === 0 ? (
        <p class="cg-empty">None yet: it comes in as the candidate is compiled, checked and timed.</p>
      ) : (
        <table>
          <tbody>
            {rows.map(row => (
              <tr key={row.key}>
                <th scope="row">
                  <WithLines text={row.label} onLine={onLine} />
                </th>
                <td>
                  <span class={`cg-value cg-tone-${row.tone}`}>
                    {TONE_MARKS[row.tone] && <span aria-hidden="true">{TONE_MARKS[row.tone]} </span>}
                    <WithLines text={row.value} onLine={onLine} />
                  </span>
                  {row.basis && <span class={`cg-basis cg-basis-${row.basis}`}>{row.basis}</span>}
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

/** What the gate, the lint rules and the compiler say, each with its place and what to write instead. */
export function Diagnostics({ items, onLine }: { items: readonly DiagnosticView[]; onLine: OnLine }) {
  if (items.length === 0) {
    return null;
  }
  return (
    <section class="cg-diagnostics" aria-label="Diagnostics">
      <header class="cg-section-head">
        <h4>
          Diagnostics <span class="cg-count">{items.length}</span>
        </h4>
      </header>
      <ul>
        {items.map((item, index) => (
          <li key={index} class={`cg-diagnostic cg-diagnostic-${item.severity}`}>
            <p>
              <span class={`cg-severity cg-tone-${SEVERITY_TONE[item.severity]}`}>{item.severity}</span>{' '}
              {item.code && <code>{item.code}</code>}{' '}
              {item.line > 0 && <WithLines text={`line ${item.line}`} onLine={onLine} />} {item.message}
            </p>
            {item.excerpt && <pre tabIndex={0}>{item.excerpt}</pre>}
            {item.suggestion && <p class="cg-suggestion">Suggestion: {item.suggestion}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ISummaryProps {
  candidate: CandidateView;
  /** What became of the expected effect; empty until it is known. */
  came: string;
}

/** The title block of a candidate: what it is, why it was proposed, what it was to bring, how it ended. */
export function Summary({ candidate, came }: ISummaryProps) {
  const { config } = candidate;
  return (
    <header class="cg-summary">
      <h3>
        <span class="cg-id">{candidate.id}</span> {candidate.title}
      </h3>
      {candidate.reason && <p>{candidate.reason}</p>}
      {candidate.predicted_effect && (
        <p>
          <span class="cg-basis cg-basis-predicted">expected</span> {candidate.predicted_effect}
          {came && (
            <>
              {' '}
              · <b class={came.includes('slower') ? 'cg-tone-bad' : ''}>it is {came}</b>
            </>
          )}
        </p>
      )}
      <p class="cg-muted">
        {candidate.provider}
        {candidate.model && ` · ${candidate.model}`}
        {candidate.parent_id !== null && ` · grown from ${candidate.parent_id}`}
        {candidate.answer && ` · ${candidate.answer}`}
      </p>
      {config.length > 0 && (
        <ul class="cg-config" aria-label="Configuration">
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
