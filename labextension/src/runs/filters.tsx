import type { TranslationBundle } from '@jupyterlab/translation';
import type { RunList } from '../schema';
import type { IListQuery } from './server';

const DAY = 86_400;

/** What is searched for; an empty text for all. */
export interface IWanted {
  q: string;
  problem: string;
  status: string;
  gpu: string;
  /** Runs that changed within so many days; 0 for all. */
  days: string;
}

export const ALL: IWanted = { q: '', problem: '', status: '', gpu: '', days: '0' };

export function queryOf({ days, ...wanted }: IWanted): IListQuery {
  const since = Number(days);
  return { ...wanted, ...(since ? { since: Date.now() / 1000 - since * DAY } : {}) };
}

function Choice({
  label,
  value,
  options,
  onChange
}: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}) {
  return (
    <select
      class="cg-input cg-filter"
      aria-label={label}
      value={value}
      onChange={event => onChange(event.currentTarget.value)}
    >
      {options.map(([text, each]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}

interface IFiltersProps {
  trans: TranslationBundle;
  wanted: IWanted;
  found: RunList | null;
  onChange: (wanted: IWanted) => void;
}

/** Search, and filters by state, date, problem and GPU. */
export function Filters({ trans, wanted, found, onChange }: IFiltersProps) {
  const search = trans.__('Search runs');
  const states: [string, string][] = [
    [trans.__('Any state'), ''],
    [trans.__('Awaits you'), 'review'],
    [trans.__('Running'), 'running'],
    [trans.__('Interrupted'), 'interrupted'],
    [trans.__('Done'), 'done']
  ];
  const dates: [string, string][] = [
    [trans.__('Any time'), '0'],
    [trans.__('Last day'), '1'],
    [trans.__('Last week'), '7'],
    [trans.__('Last month'), '30']
  ];
  const named = (all: string, names: string[] = []): [string, string][] => [
    [all, ''],
    ...names.map((each): [string, string] => [each, each])
  ];
  const choice = (label: string, name: keyof IWanted, options: [string, string][]) => (
    <Choice
      label={label}
      value={wanted[name]}
      options={options}
      onChange={value => onChange({ ...wanted, [name]: value })}
    />
  );
  return (
    <>
      <input
        class="cg-input"
        type="search"
        placeholder={search}
        aria-label={search}
        value={wanted.q}
        onInput={event => onChange({ ...wanted, q: event.currentTarget.value })}
      />
      <div class="cg-filters">
        {choice(trans.__('State'), 'status', states)}
        {choice(trans.__('Date'), 'days', dates)}
        {choice(trans.__('Problem'), 'problem', named(trans.__('Any problem'), found?.problems))}
        {choice(trans.__('GPU'), 'gpu', named(trans.__('Any GPU'), found?.gpus))}
      </div>
    </>
  );
}
