import type { RunView } from '../schema';

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

const LABELS: Record<IScope['until'], string> = {
  '': 'this step',
  steps: 'this and the next …',
  floor: 'until within … of the floor',
  slower: 'until slower'
};

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
        aria-label="Approve for"
        title="What passes and is faster is then approved without asking; anything else is asked"
        value={scope.until}
        onChange={event => onChange({ ...scope, until: event.currentTarget.value as IScope['until'] })}
      >
        {(Object.keys(LABELS) as IScope['until'][]).map(until => (
          <option key={until} value={until}>
            {LABELS[until]}
          </option>
        ))}
      </select>
      {scope.until === 'steps' &&
        amount('Steps', scope.steps, 'steps', steps => onChange({ ...scope, steps: Math.round(steps) }))}
      {scope.until === 'floor' &&
        amount('Percent above the floor', scope.percent, '%', percent => onChange({ ...scope, percent }))}
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
      Approves by itself, <b>{scope.text}</b>: {scope.used} given. Stop ends it.
    </p>
  );
}
