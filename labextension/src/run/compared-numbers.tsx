import type { ComponentChildren } from 'preact';
import type { MetricView } from '../schema';
import { basisWord } from './format';
import type { IPair, ISide } from './sides';
import { trans } from './words';

function Number({ metric }: { metric: MetricView | undefined }) {
  if (metric === undefined) {
    return <td class="cg-muted">–</td>;
  }
  return (
    <td>
      {metric.text}
      {metric.basis && <span class={`cg-basis cg-basis-${metric.basis}`}>{basisWord(metric.basis)}</span>}
    </td>
  );
}

interface INumbersProps {
  before: ISide;
  after: ISide;
  pairs: readonly IPair[];
  /** Rows of words, before those of numbers. */
  children?: ComponentChildren;
}

/** The numbers of two candidates beside each other, and how they changed or why that is not said. */
export function Numbers({ before, after, pairs, children }: INumbersProps) {
  return (
    <div class="cg-scroll cg-comparison" role="group" aria-label={trans.__('Numbers')} tabIndex={0}>
      <table aria-label={trans.__('Numbers of %1 and %2', before.name, after.name)}>
        <thead>
          <tr>
            <td />
            <th scope="col">{before.name}</th>
            <th scope="col">{after.name}</th>
            <th scope="col">{trans.__('change')}</th>
          </tr>
        </thead>
        <tbody>
          {children}
          {pairs.map(({ key, label, before: old, after: now, change, reason }) => (
            <tr key={key}>
              <th scope="row">{label}</th>
              <Number metric={old} />
              <Number metric={now} />
              <td class={change ? `cg-tone-${change.tone}` : reason && 'cg-muted cg-not-compared'}>
                {change?.text ?? reason}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
