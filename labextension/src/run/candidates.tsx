import type { RunView } from '../schema';
import { branchDepths, microseconds, standing } from './format';

interface ICandidatesProps {
  view: RunView;
  selectedId: string | null;
  onSelect: (id: string) => void;
}

/** Every candidate, oldest first, with its lineage: a branch is indented and names where it grew from. */
export function Candidates({ view, selectedId, onSelect }: ICandidatesProps) {
  const depths = branchDepths(view.candidates);
  const trend = new Map(view.trend.map(point => [point.candidate_id, point]));
  return (
    <nav class="cg-candidates" aria-label="Candidates">
      <h3>
        Candidates <span class="cg-count">{view.candidates.length}</span>
      </h3>
      {view.candidates.length === 0 && <p class="cg-empty">None yet: the first one is being written.</p>}
      <ol>
        {view.candidates.map(candidate => {
          const { mark, word, tone } = standing(candidate);
          const point = trend.get(candidate.id);
          const time = point?.time_us ?? null;
          return (
            <li key={candidate.id} style={{ '--cg-depth': depths.get(candidate.id) ?? 0 }}>
              <button
                type="button"
                class="cg-candidate"
                aria-current={candidate.id === selectedId ? 'true' : undefined}
                onClick={() => onSelect(candidate.id)}
              >
                <span class={`cg-candidate-mark cg-tone-${tone}`} aria-hidden="true">
                  {mark}
                </span>
                <span class="cg-candidate-text">
                  <span class="cg-candidate-title">
                    <b>{candidate.id}</b> {candidate.title}
                  </span>
                  <span class="cg-candidate-meta">
                    <span class={`cg-tone-${tone}`}>{word}</span>
                    {time !== null && ` · ${microseconds(time)} ${point?.basis ?? ''}`}
                    {candidate.parent_id !== null && ` · from ${candidate.parent_id}`}
                    {candidate.id === view.incumbent_id && ' · best so far'}
                  </span>
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
