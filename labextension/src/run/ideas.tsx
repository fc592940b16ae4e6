import type { IdeaView } from '../schema';
import { trans } from './words';

const STATUS = (status: IdeaView['status']): string =>
  ({
    open: trans.__('not carried out yet'),
    held: trans.__('held'),
    refuted: trans.__('refuted'),
    tried: trans.__('tried')
  })[status];

/** Ideas of the model: what they claim, what was expected of them, and what came. */
export function Ideas({ ideas = [] }: { ideas?: IdeaView[] }) {
  if (ideas.length === 0) {
    return null;
  }
  return (
    <details class="cg-details">
      <summary>
        {trans.__('Ideas')}{' '}
        <span class="cg-muted">
          {trans.__(
            '%1, %2 not carried out yet',
            ideas.length,
            ideas.filter(each => each.status === 'open').length
          )}
        </span>
      </summary>
      <table class="cg-workloads cg-ideas">
        <thead>
          <tr>
            <th scope="col">{trans.__('Idea')}</th>
            <th scope="col">{trans.__('Status')}</th>
            <th scope="col">{trans.__('Expected')}</th>
            <th scope="col">{trans.__('Came')}</th>
          </tr>
        </thead>
        <tbody>
          {ideas.map(idea => (
            <tr key={idea.id}>
              <th scope="row">
                {idea.id}: {idea.claim}
              </th>
              <td>
                {STATUS(idea.status)}
                {idea.tries.length > 0 && ` (${idea.tries.join(', ')})`}
              </td>
              <td>{idea.expected}</td>
              <td>{idea.came}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
