import { render } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { RunView } from '../schema';
import { Numbers } from './compared-numbers';
import { Texts } from './compared-texts';
import { standing } from './format';
import { useWords } from './hooks';
import { readRun } from './read';
import { FactRows, numbersOf } from './run-facts';
import { paired, sameProblem, type ISide } from './sides';
import type { Look } from './verbs';
import { trans } from './words';

/** A run that is compared with another. */
export interface IComparedRun {
  title: string;
  /** The run as it was read. */
  data: unknown;
  look: Look;
  /** Opens the run itself. */
  onOpen: () => void;
}

/** The candidate a run is compared by unless the reader picks another: the accepted one, else the fastest that passed. */
function kernelOf(view: RunView, picked: string | null) {
  const find = (id: string | null) => view.candidates.find(each => each.id === id);
  return find(picked) ?? find(view.incumbent_id) ?? find(view.best_id) ?? view.candidates.at(-1);
}

interface IChoiceProps {
  label: string;
  run: IComparedRun;
  side: ISide;
  onPick: (id: string) => void;
}

/** One of the runs: opens it, and chooses which of its candidates is compared. */
function Choice({ label, run, side, onPick }: IChoiceProps) {
  return (
    <span class="cg-row">
      {label}
      <button type="button" class="cg-link" title={trans.__('Open this run')} onClick={run.onOpen}>
        {run.title}
      </button>
      <select
        class="cg-select"
        aria-label={trans.__('Candidate of %1', run.title)}
        value={side.candidate.id}
        onChange={event => onPick(event.currentTarget.value)}
      >
        {side.view.candidates.map(each => (
          <option key={each.id} value={each.id}>
            {each.id} {each.title} ({standing(each).word})
          </option>
        ))}
      </select>
    </span>
  );
}

/** The run as a side, or why it cannot be compared. */
function sideOf({ title, data, look }: IComparedRun, picked: string | null): ISide | string {
  const read = readRun(data);
  if ('problem' in read) {
    return `${title}: ${read.problem}`;
  }
  const candidate = kernelOf(read.view, picked);
  return candidate
    ? { name: `${title} ${candidate.id}`, view: read.view, candidate, look }
    : trans.__('%1 has no candidate to compare yet.', title);
}

function Sides({
  runs,
  sides,
  onPick
}: {
  runs: readonly [IComparedRun, IComparedRun];
  sides: readonly [ISide, ISide];
  onPick: (at: 0 | 1, id: string) => void;
}) {
  const [before, after] = sides;
  return (
    <>
      <header class="cg-compare-head">
        <Choice label={trans.__('From')} run={runs[0]} side={before} onPick={id => onPick(0, id)} />
        <Choice label={trans.__('To')} run={runs[1]} side={after} onPick={id => onPick(1, id)} />
      </header>
      {!sameProblem(before.view, after.view) && (
        <p class="cg-note" role="status">
          {trans.__(
            'The two runs have different problems: another reference, or other shapes to time. Their numbers stand beside each other and are not compared.'
          )}
        </p>
      )}
      <Numbers before={before} after={after} pairs={paired(before, after, numbersOf)}>
        <FactRows sides={sides} />
      </Numbers>
      <Texts before={before} after={after} />
    </>
  );
}

/** Two runs by one candidate of each: facts and numbers beside each other, and what differs in the texts. */
function ComparedRuns({ runs }: { runs: readonly [IComparedRun, IComparedRun] }) {
  const words = useWords();
  const [picked, setPicked] = useState<readonly [string | null, string | null]>([null, null]);
  const [before, after] = useMemo(
    () => [sideOf(runs[0], picked[0]), sideOf(runs[1], picked[1])] as const,
    // What cannot be shown is said in words too.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [runs, picked, words]
  );
  const label = trans.__('Comparison of %1 and %2', runs[0].title, runs[1].title);
  return (
    <article class="cg-root cg-compared" aria-label={label}>
      <div class="cg-main">
        {typeof before === 'string' || typeof after === 'string' ? (
          [before, after].map(
            (side, at) =>
              typeof side === 'string' && (
                <p key={at} role="status">
                  {side}
                </p>
              )
          )
        ) : (
          <Sides
            runs={runs}
            sides={[before, after]}
            onPick={(at, id) => setPicked(at === 0 ? [id, picked[1]] : [picked[0], id])}
          />
        )}
      </div>
    </article>
  );
}

/** Shows two runs beside each other in `host`; call again to update, and `unmount` to let go. */
export function mountComparison(host: HTMLElement, runs: readonly [IComparedRun, IComparedRun]): void {
  render(<ComparedRuns runs={runs} />, host);
}
