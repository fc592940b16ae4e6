import { useState } from 'preact/hooks';
import type { CandidateView, ConfigChange, DiffLine } from '../schema';

const SIGNS: Record<DiffLine['kind'], string> = { same: ' ', added: '+', removed: '−', gap: '⋯' };
const SPOKEN: Record<DiffLine['kind'], string> = {
  same: '',
  added: 'added: ',
  removed: 'removed: ',
  gap: ''
};

function lines(text: string): string[] {
  const out = text.split('\n');
  return out.at(-1) === '' ? out.slice(0, -1) : out;
}

/** The unchanged lines a gap stands for, from the full source: after the line before it, up to the line after it. */
export function hidden(diff: readonly DiffLine[], index: number, source: readonly string[]): DiffLine[] {
  const before = diff.slice(0, index).findLast(line => line.new !== null)?.new ?? 0;
  const next = diff.slice(index + 1).find(line => line.new !== null)?.new ?? source.length + 1;
  const firstOld = (diff.slice(0, index).findLast(line => line.old !== null)?.old ?? 0) + 1;
  return source
    .slice(before, next - 1)
    .map((text, i) => ({ kind: 'same', text, old: firstOld + i, new: before + i + 1 }));
}

function Row({ line }: { line: DiffLine }) {
  return (
    <tr class={`cg-line cg-line-${line.kind}`}>
      <td class="cg-line-number">{line.old ?? ''}</td>
      <td class="cg-line-number">{line.new ?? ''}</td>
      <td class="cg-line-sign" aria-hidden="true">
        {SIGNS[line.kind]}
      </td>
      <td class="cg-line-text">
        {SPOKEN[line.kind] && <span class="cg-hidden">{SPOKEN[line.kind]}</span>}
        {line.text}
      </td>
    </tr>
  );
}

function Diff({ diff, source }: { diff: readonly DiffLine[]; source: readonly string[] }) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const toggle = (index: number) =>
    setOpen(new Set(open.has(index) ? [...open].filter(i => i !== index) : [...open, index]));
  return (
    <tbody>
      {diff.flatMap((line, index) => {
        if (line.kind !== 'gap') {
          return [<Row key={`${line.old ?? ''}:${line.new ?? ''}`} line={line} />];
        }
        const expanded = open.has(index);
        const gap = (
          <tr key={`gap ${index}`} class="cg-line cg-line-gap">
            <td colSpan={4}>
              <button type="button" class="cg-gap" aria-expanded={expanded} onClick={() => toggle(index)}>
                {expanded ? `▾ hide ${line.text}` : `▸ ${line.text}`}
              </button>
            </td>
          </tr>
        );
        const shown = expanded ? hidden(diff, index, source) : [];
        return [gap, ...shown.map(each => <Row key={`${index} ${each.new ?? ''}`} line={each} />)];
      })}
    </tbody>
  );
}

/** The parameters whose values are not the parent's. */
function ConfigChanges({ changes }: { changes: readonly ConfigChange[] }) {
  return (
    <ul class="cg-config" aria-label="Changed parameters">
      {changes.map(({ name, old, new: now }) => (
        <li key={name}>
          <code>
            {name}: {old || 'none'} → {now || 'none'}
          </code>
        </li>
      ))}
    </ul>
  );
}

interface ISourceProps {
  candidate: CandidateView;
  /** Whether the text shown has parameters; null where the candidate has one text only. */
  tunable: boolean | null;
  onTunable: (tunable: boolean) => void;
}

/** A candidate's source: what changed since its parent, or the whole text. */
export function Source({ candidate, tunable, onTunable }: ISourceProps) {
  const [whole, setWhole] = useState(false);
  const source = lines(candidate.source);
  const hasDiff = candidate.diff.length > 0;
  const showDiff = hasDiff && !whole;
  const added = candidate.diff.filter(line => line.kind === 'added').length;
  const removed = candidate.diff.filter(line => line.kind === 'removed').length;
  return (
    <section class="cg-source" aria-label="Source">
      <header class="cg-section-head">
        <h4>{showDiff ? `Changes from ${candidate.parent_id ?? 'its parent'}` : 'Source'}</h4>
        {hasDiff && (
          <span class="cg-diffstat">
            <span class="cg-tone-good">+{added}</span> <span class="cg-tone-bad">−{removed}</span>
            <span class="cg-hidden"> lines added and removed</span>
          </span>
        )}
        <span class="cg-spacer" />
        <span class="cg-muted">{source.length} lines</span>
        {tunable !== null && (
          <span class="cg-choice" role="group" aria-label="Which text">
            {[false, true].map(general => (
              <button
                key={String(general)}
                type="button"
                class="cg-button cg-small"
                aria-pressed={tunable === general}
                title={
                  general
                    ? 'The text with its parameters, which a search tunes and an edit starts from'
                    : 'The text for this config alone: it compiles to the same machine code'
                }
                onClick={() => onTunable(general)}
              >
                {general ? 'Tunable' : 'Specialised'}
              </button>
            ))}
          </span>
        )}
        {hasDiff && (
          <button
            type="button"
            class="cg-button cg-small"
            aria-pressed={whole}
            onClick={() => setWhole(!whole)}
          >
            {whole ? 'Show changes' : 'Show full source'}
          </button>
        )}
      </header>
      {showDiff && candidate.config_changes.length > 0 && (
        <ConfigChanges changes={candidate.config_changes} />
      )}
      {/* Focusable, so that the keyboard can scroll it. */}
      <div class="cg-code" tabIndex={0} role="region" aria-label={`Source of ${candidate.id}`}>
        <table>
          {showDiff ? (
            <Diff key={candidate.id} diff={candidate.diff} source={source} />
          ) : (
            <tbody>
              {source.map((text, i) => (
                <tr key={i} class="cg-line cg-line-same">
                  <td class="cg-line-number">{i + 1}</td>
                  <td class="cg-line-text">{text}</td>
                </tr>
              ))}
            </tbody>
          )}
        </table>
      </div>
    </section>
  );
}
