import type { RunView } from '../schema';
import { Phrase } from './phrase';
import { trans } from './words';

/** For how long an approval answers: this step alone, or until something. */
export interface IScope {
  until: '' | 'steps' | 'floor' | 'slower';
  steps: number;
  percent: number;
}

export const THIS_STEP: IScope = { until: '', steps: 3, percent: 5 };

/** As the kernel reads it; empty for this step alone. */
export function scopeText({ until, steps, percent }: IScope): string {
  return { '': '', steps: `${steps} steps`, floor: `within ${percent}%`, slower: 'until slower' }[until];
}

const labels = (): Record<IScope['until'], string> => ({
  '': trans.__('this step'),
  steps: trans.__('this and the next …'),
  floor: trans.__('until within … of the floor'),
  slower: trans.__('until slower')
});

/** Chooses how long an approval answers for candidates that pass and are faster. */
export function ScopeChoice({ scope, onChange }: { scope: IScope; onChange: (scope: IScope) => void }) {
  const amount = (label: string, value: number, unit: string, set: (value: number) => void) => (
    <label class="cg-amount">
      <input
        class="cg-input cg-line-number"
        type="number"
        aria-label={label}
        min={1}
        max={999}
        value={value}
        onInput={event => set(Math.min(999, Math.max(1, Number(event.currentTarget.value) || 1)))}
      />{' '}
      {unit}
    </label>
  );
  return (
    <span class="cg-scope">
      <select
        class="cg-select"
        aria-label={trans.__('Approve for')}
        title={trans.__('What passes and is faster is then approved without asking; anything else is asked')}
        value={scope.until}
        onChange={event => onChange({ ...scope, until: event.currentTarget.value as IScope['until'] })}
      >
        {Object.entries(labels()).map(([until, label]) => (
          <option key={until} value={until}>
            {label}
          </option>
        ))}
      </select>
      {scope.until === 'steps' &&
        amount(trans.__('Steps'), scope.steps, trans.__('steps'), steps =>
          onChange({ ...scope, steps: Math.round(steps) })
        )}
      {scope.until === 'floor' &&
        amount(trans.__('Percent above the floor'), scope.percent, '%', percent =>
          onChange({ ...scope, percent })
        )}
    </span>
  );
}

/** That the run answers itself, for as long as it does. */
export function ScopeNote({ scope, status }: Pick<RunView, 'scope' | 'status'>) {
  if (scope === null || scope.ended !== '' || status === 'done') {
    return null;
  }
  return (
    <p class="cg-note" role="status">
      <Phrase
        text={trans.__('Approves by itself, %1: %2 given. Stop ends it.')}
        values={[<b>{scope.text}</b>, scope.used]}
      />
    </p>
  );
}
