import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RunView } from '../schema';
import { candidateTree, microseconds, standing } from './format';

interface ICandidatesProps {
  view: RunView;
  selectedId: string | null;
  onSelect: (id: string) => void;
}

/** Scrolls `box` alone, and no further than `element` needs: `scrollIntoView` would move the notebook too. */
function reveal(box: HTMLElement, element: HTMLElement): void {
  const outer = box.getBoundingClientRect();
  const inner = element.getBoundingClientRect();
  if (inner.top < outer.top) {
    box.scrollTop -= outer.top - inner.top;
  } else if (inner.bottom > outer.bottom) {
    box.scrollTop += inner.bottom - outer.bottom;
  }
}

/** Every candidate under the one that it was made from. *best* is the fastest, *current* the one accepted last. */
export function Candidates({ view, selectedId, onSelect }: ICandidatesProps) {
  const list = useRef<HTMLOListElement>(null);
  const trend = new Map(view.trend.map(point => [point.candidate_id, point]));
  useLayoutEffect(() => {
    const selected = list.current?.querySelector<HTMLElement>('[aria-current]');
    if (list.current && selected) {
      reveal(list.current, selected);
    }
  }, [selectedId, view.candidates.length]);
  return (
    <nav class="cg-candidates" aria-label="Candidates">
      <h3>
        Candidates <span class="cg-count">{view.candidates.length}</span>
      </h3>
      {view.candidates.length === 0 && (
        <p class="cg-empty">
          {view.status === 'running' ? 'None yet: the first one is being written.' : 'None was written.'}
        </p>
      )}
      <ol ref={list}>
        {candidateTree(view.candidates).map(({ candidate, depth }) => {
          const { mark, word, tone } = standing(candidate);
          const point = trend.get(candidate.id);
          const time = point?.time_us ?? null;
          const names = [
            candidate.id === view.best_id && 'best',
            candidate.id === view.incumbent_id && 'current'
          ].filter(Boolean);
          return (
            <li key={candidate.id} style={{ '--cg-depth': Math.min(depth, 8) }}>
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
                    {names.length > 0 && <b class="cg-names"> · {names.join(', ')}</b>}
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
