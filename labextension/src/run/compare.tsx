import { Numbers } from './compared-numbers';
import { Texts } from './compared-texts';
import { Phrase } from './phrase';
import { paired, type ISide } from './sides';
import type { ITabProps } from './tabs';
import { trans } from './words';

/** The selected candidate and any other: numbers, parameters, source and PTX, and what differs. */
export function Compare({ view, candidate, parent, compared, onCompare, look }: ITabProps) {
  const rest = view.candidates.filter(each => each.id !== candidate.id);
  const usual = [compared, parent, rest.find(each => each.id === view.best_id), rest[0]];
  const other = usual.find(each => each && each.id !== candidate.id);
  if (!other) {
    return (
      <p class="cg-empty">{trans.__('There is no other candidate to compare %1 with yet.', candidate.id)}</p>
    );
  }
  const before: ISide = { name: other.id, view, candidate: other, look };
  const after: ISide = { name: candidate.id, view, candidate, look };
  return (
    <>
      <header class="cg-section-head cg-compare-head">
        <label>
          {trans.__('From')}{' '}
          <select class="cg-select" value={other.id} onChange={event => onCompare(event.currentTarget.value)}>
            {rest.map(each => (
              <option key={each.id} value={each.id}>
                {each.id} {each.title}
              </option>
            ))}
          </select>
        </label>
        <span>
          <Phrase text={trans.__('to %1 %2')} values={[<b>{candidate.id}</b>, candidate.title]} />
        </span>
      </header>
      <p class="cg-muted">
        {trans.__('Ctrl-click a candidate in the lineage compares the selected one with it.')}
      </p>
      <Numbers
        before={before}
        after={after}
        pairs={paired(before, after, ({ candidate: of }) => [...of.metrics, ...of.counters])}
      />
      <Texts before={before} after={after} />
    </>
  );
}
