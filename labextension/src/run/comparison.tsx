import type { CandidateView, ConfigChange, MetricView, RunView } from '../schema';
import { basisWord, beside, change, microseconds, significant } from './format';
import { trans } from './words';

interface IColumn {
  name: string;
  candidate: CandidateView;
}

/** The candidates beside which one is seen: its parent, the current kernel and the best. */
function others(view: RunView, selected: CandidateView): IColumn[] {
  const found = new Map<string, string[]>();
  const add = (id: string | null | undefined, name: string) => {
    if (id && id !== selected.id) {
      found.set(id, [...(found.get(id) ?? []), name]);
    }
  };
  add(selected.parent_id, trans.__('parent'));
  add(view.incumbent_id, trans.__('current'));
  add(view.best_id, trans.__('best'));
  return [...found].flatMap(([id, names]) => {
    const candidate = view.candidates.find(each => each.id === id);
    return candidate ? [{ candidate, name: names.join(', ') }] : [];
  });
}

/** How the candidate's number differs from another's, in words and never by colour alone. */
export function difference(
  mine: MetricView,
  other: MetricView
): { text: string; tone: 'good' | 'bad' | 'neutral' } | null {
  if (mine.value === null || other.value === null || mine.basis !== other.basis) {
    return null;
  }
  const { value } = mine;
  if (value === other.value) {
    return { text: '=', tone: 'neutral' };
  }
  const tone = value < other.value === (mine.better === 'less') ? 'good' : 'bad';
  if (other.value === 0) {
    return { text: value > 0 ? trans.__('more') : trans.__('less'), tone };
  }
  const text = change(value / other.value);
  return { text, tone: text === '=' ? 'neutral' : tone };
}

function Cell({ mine, other }: { mine: MetricView; other: MetricView | undefined }) {
  if (other === undefined) {
    return <td class="cg-muted">–</td>;
  }
  const delta = difference(mine, other);
  return (
    <td>
      <span class="cg-number">{other.text}</span>{' '}
      {delta && <span class={`cg-delta cg-tone-${delta.tone}`}>{delta.text}</span>}
    </td>
  );
}

/** The parameters whose values are not the parent's. */
export function ConfigChanges({ changes }: { changes: readonly ConfigChange[] }) {
  return (
    <ul class="cg-config" aria-label={trans.__('Changed parameters')}>
      {changes.map(({ name, old, new: now }) => (
        <li key={name}>
          <code>
            {name}: {old || trans.__('none')} → {now || trans.__('none')}
          </code>
        </li>
      ))}
    </ul>
  );
}

/** How a candidate stands to a baseline, with the interval of the ratio if both were timed in the same rounds. */
function Beside({ candidate, name, ratio }: { candidate: CandidateView; name: string; ratio: number }) {
  const { low, high } = candidate.baseline_intervals[name] ?? { low: ratio, high: ratio };
  const sure = high <= 1 ? 'good' : low > 1 ? 'bad' : 'neutral';
  return (
    <>
      <span class={`cg-delta cg-tone-${sure}`}>{beside(candidate.id, ratio)}</span>
      {high > low && (
        <span class="cg-muted">
          {' · '}
          {trans.__('95%: %1 to %2 of its time', `${significant(low)}×`, `${significant(high)}×`)}
        </span>
      )}
    </>
  );
}

/** A candidate's numbers beside those of its parent, the current kernel and the best. */
export function Comparison({ view, candidate }: { view: RunView; candidate: CandidateView }) {
  const columns = others(view, candidate);
  const baselines = Object.entries(candidate.baselines);
  const time = candidate.metrics.find(metric => metric.key === 'time')?.value ?? null;
  if (candidate.metrics.length === 0 || (columns.length === 0 && baselines.length === 0)) {
    return null;
  }
  return (
    <section class="cg-comparison" aria-label={trans.__('Comparison')}>
      <header class="cg-section-head">
        <h4>{trans.__('Compared')}</h4>
      </header>
      <div class="cg-scroll" role="group" aria-label={trans.__('Numbers')} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <td />
              <th scope="col">{candidate.id}</th>
              {columns.map(({ candidate: other, name }) => (
                <th key={other.id} scope="col">
                  {other.id}
                  {name && <span class="cg-muted"> {name}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {candidate.metrics.map(metric => (
              <tr key={metric.key}>
                <th scope="row">{metric.label}</th>
                <td>
                  <span class="cg-value">{metric.text}</span>
                  {metric.basis && (
                    <span class={`cg-basis cg-basis-${metric.basis}`}>{basisWord(metric.basis)}</span>
                  )}
                </td>
                {columns.map(({ candidate: other }) => (
                  <Cell
                    key={other.id}
                    mine={metric}
                    other={other.metrics.find(each => each.key === metric.key)}
                  />
                ))}
              </tr>
            ))}
            {baselines.map(([name, us]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td colSpan={columns.length + 1}>
                  {microseconds(us)}{' '}
                  {time !== null && <Beside candidate={candidate} name={name} ratio={time / us} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
