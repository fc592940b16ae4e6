import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { RunView } from '../schema';
import { basisWord, change, compared, microseconds, standing, timeRatio } from './format';
import type { IPlaced } from './layout';
import { trans } from './words';

/** Pixels: of a row, between lanes, from a row's left to the first lane, and of a node's radius. */
const ROW = 44;
const LANE = 18;
const LEFT = 16;
const RADIUS = 7;
const MOST_LANES = 7;

const xOf = (node: IPlaced) => LEFT + LANE * Math.min(node.lane, MOST_LANES);
const yOf = (node: IPlaced) => ROW * (node.row + 0.5);

interface ILineageProps {
  view: RunView;
  nodes: readonly IPlaced[];
  selectedId: string | null;
  onSelect: (id: string) => void;
  /** Compares the selected candidate with another. */
  onCompare: (id: string) => void;
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

/** From a candidate to one made from it: down its lane, then to the right where that is a branch. */
function Edge({ from, to }: { from: IPlaced; to: IPlaced }) {
  const [x, y] = [xOf(to), yOf(to)];
  const bend = Math.min(LANE, x - xOf(from));
  const path =
    bend === 0
      ? `M${x},${yOf(from)}V${y}`
      : `M${xOf(from)},${yOf(from)}V${y - bend}q0,${bend},${bend},${bend}H${x}`;
  return <path class={to.trunk ? 'cg-edge cg-edge-trunk' : 'cg-edge'} d={path} />;
}

/** A verdict as a shape with a mark in it: round where it passed, square where it failed, dashed while it is unknown. */
function Mark({ node }: { node: IPlaced }) {
  const { mark, tone, shape } = standing(node.candidate);
  const [x, y] = [xOf(node), yOf(node)];
  return (
    <g class={`cg-node cg-node-${shape} cg-tone-${tone}`}>
      {shape === 'square' ? (
        <rect x={x - RADIUS} y={y - RADIUS} width={2 * RADIUS} height={2 * RADIUS} rx={1.5} />
      ) : (
        <circle cx={x} cy={y} r={RADIUS} />
      )}
      <text x={x} y={y + 3.5} text-anchor="middle">
        {mark}
      </text>
    </g>
  );
}

/** Where each key goes from a node; undefined where there is none. */
const MOVES: Readonly<Record<string, (at: IPlaced, all: readonly IPlaced[]) => IPlaced | null | undefined>> =
  {
    ArrowDown: (at, all) => all[at.row + 1],
    ArrowUp: (at, all) => all[at.row - 1],
    ArrowLeft: at => at.parent,
    ArrowRight: (at, all) => all.find(each => each.parent === at),
    Home: (_, all) => all[0],
    End: (_, all) => all.at(-1)
  };

/**
 * Every candidate, joined to the one it was made from, with verdict, time and its difference from that one's. *best* is
 * the fastest, *current* the one accepted last, to which the thick line leads. Arrow keys move, Enter selects;
 * with Ctrl it compares with the selected one, as a click does.
 */
export function Lineage({ view, nodes, selectedId, onSelect, onCompare }: ILineageProps) {
  const box = useRef<HTMLDivElement>(null);
  const [focusedId, setFocusedId] = useState<string | null>(null);
  const trend = new Map(view.trend.map(point => [point.candidate_id, point]));
  useLayoutEffect(() => {
    const selected = box.current?.querySelector<HTMLElement>('[aria-selected=true]');
    if (box.current && selected) {
      reveal(box.current, selected);
    }
  }, [selectedId, nodes]);
  const entry = nodes.find(each => each.candidate.id === (focusedId ?? selectedId)) ?? nodes[0];
  const onKeyDown = (event: KeyboardEvent) => {
    const to = entry && MOVES[event.key]?.(entry, nodes);
    if (to) {
      box.current?.querySelectorAll<HTMLElement>('[role=treeitem]')[to.row]?.focus();
    }
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && entry) {
      onCompare(entry.candidate.id);
    }
    if (event.key in MOVES || (event.key === 'Enter' && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  const width = Math.max(0, ...nodes.map(xOf)) + LEFT;
  return (
    <section class="cg-lineage" aria-label={trans.__('Lineage')}>
      <h3>
        {trans.__('Lineage')} <span class="cg-count">{nodes.length}</span>
      </h3>
      {nodes.length === 0 ? (
        <p class="cg-empty">
          {view.status === 'running'
            ? trans.__('None yet: the first one is being written.')
            : trans.__('None was written.')}
        </p>
      ) : (
        <div class="cg-lineage-box" ref={box}>
          <svg
            class="cg-lineage-graph"
            width={width}
            height={ROW * nodes.length}
            viewBox={`0 0 ${width} ${ROW * nodes.length}`}
            aria-hidden="true"
          >
            {[...nodes]
              .sort((a, b) => Number(a.trunk) - Number(b.trunk))
              .map(node => node.parent && <Edge key={node.candidate.id} from={node.parent} to={node} />)}
            {nodes.map(node => (
              <Mark key={node.candidate.id} node={node} />
            ))}
          </svg>
          <ol
            role="tree"
            aria-label={trans.__('Candidates, each under the one it was made from')}
            onKeyDown={onKeyDown}
            onFocusOut={() => setFocusedId(null)}
          >
            {nodes.map(node => {
              const { candidate, depth } = node;
              const { word, tone } = standing(candidate);
              const point = trend.get(candidate.id);
              const time = point?.time_us ? `${microseconds(point.time_us)} ${basisWord(point.basis)}` : '';
              const ratio = timeRatio(view, candidate.id, candidate.parent_id);
              const names = [
                candidate.id === view.best_id && trans.__('best'),
                candidate.id === view.incumbent_id && trans.__('current')
              ].filter(Boolean);
              return (
                <li key={candidate.id} role="none" style={{ height: `${ROW}px` }}>
                  <button
                    type="button"
                    role="treeitem"
                    data-candidate={candidate.id}
                    class="cg-candidate"
                    style={{ paddingLeft: `${xOf(node) + RADIUS + 7}px` }}
                    aria-level={depth + 1}
                    aria-selected={candidate.id === selectedId}
                    tabIndex={node === entry ? 0 : -1}
                    title={candidate.title}
                    onFocus={() => setFocusedId(candidate.id)}
                    onClick={event =>
                      event.ctrlKey || event.metaKey ? onCompare(candidate.id) : onSelect(candidate.id)
                    }
                  >
                    <span class="cg-candidate-head">
                      <span class="cg-candidate-title">
                        <b>{candidate.id}</b> {candidate.title}
                      </span>
                      {names.length > 0 && <b class="cg-names"> {names.join(', ')}</b>}
                    </span>{' '}
                    <span class="cg-candidate-meta">
                      <span class={`cg-tone-${tone}`}>{word}</span>
                      {time && ` · ${time}`}
                      {ratio !== null && (
                        <span class={`cg-tone-${ratio < 1 ? 'good' : ratio > 1 ? 'bad' : 'neutral'}`}>
                          {' '}
                          · {change(ratio)}
                        </span>
                      )}
                      {candidate.parent_id !== null && (
                        <span class="cg-hidden">
                          , {ratio !== null && `${compared(ratio, candidate.parent_id)}, `}
                          {trans.__('made from %1', candidate.parent_id)}
                        </span>
                      )}
                    </span>
                  </button>
                </li>
              );
            })}
          </ol>
        </div>
      )}
    </section>
  );
}
