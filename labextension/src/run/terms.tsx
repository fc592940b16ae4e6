import type { CandidateView } from '../schema';
import { basisWord, microseconds } from './format';
import { trans } from './words';

/**
 * Where the predicted time goes: a bar for each unit, for what blocks wait, with its parts, and for the launch. Units
 * work at the same time: the longest bar is the limit, not their sum. Last stands the time of the whole call.
 */
export function Terms({ candidate }: { candidate: CandidateView }) {
  const { terms, metrics } = candidate;
  if (terms.length === 0) {
    return null;
  }
  const longest = Math.max(...terms.map(term => term.us));
  const whole = metrics.find(metric => metric.key === 'time');
  const most = Math.max(longest, whole?.value ?? 0);
  const limit = terms.findIndex(term => term.us === longest && !term.part);
  return (
    <section class="cg-terms" aria-label={trans.__('Where the time goes')}>
      <header class="cg-section-head">
        <h4>{trans.__('Where the time goes')}</h4>
        <span class="cg-basis cg-basis-predicted">{trans.__('predicted')}</span>
        <span class="cg-muted">{trans.__('units work at the same time: the longest bar is the limit')}</span>
      </header>
      <table>
        <tbody>
          {terms.map(({ name, us, part }, index) => (
            <tr key={name} class={`${part ? 'cg-part' : ''} ${index === limit ? 'cg-limit' : ''}`}>
              <th scope="row">
                {name}
                {index === limit && <span class="cg-hidden"> {trans.__('(the limit)')}</span>}
              </th>
              <td class="cg-bar-cell">
                <span class="cg-bar" style={{ width: `${(100 * us) / most}%` }} aria-hidden="true" />
              </td>
              <td>{microseconds(us)}</td>
            </tr>
          ))}
          {whole?.value && (
            <tr class={`cg-whole cg-${whole.basis}`}>
              <th scope="row">{trans.__('whole call, %1', basisWord(whole.basis))}</th>
              <td class="cg-bar-cell">
                <span class="cg-bar" style={{ width: `${(100 * whole.value) / most}%` }} aria-hidden="true" />
              </td>
              <td>{whole.text}</td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}
