import type { RunView } from '../schema';
import { buttonOf, type Verb } from './verbs';
import { trans } from './words';

/** Where a run is shown that cannot be answered there: why, and how to get to where it can. */
export interface IAway {
  reason: string;
  label: string;
  go: () => void;
}

const SHOWN: readonly Verb[] = ['approve', 'reject', 'edit', 'retry'];

/** The action bar of such a run: its verbs, which do nothing here, and the way to where they do. */
export function Away({ view, away }: { view: RunView; away: IAway }) {
  const id = view.current_id ?? '';
  const verbs = view.status === 'done' || id === '' ? [] : SHOWN;
  return (
    <section class="cg-actions" aria-label={trans.__('Actions')}>
      <div class="cg-row">
        <button type="button" class="cg-button cg-primary" onClick={away.go}>
          {away.label}
        </button>
        {verbs.map(verb => (
          <button key={verb} type="button" class="cg-button" disabled title={away.reason}>
            {buttonOf(verb, id).label}
          </button>
        ))}
        <span class="cg-muted">{away.reason}</span>
      </div>
    </section>
  );
}
