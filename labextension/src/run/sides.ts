import type { CandidateView, ConfigChange, MetricView, RunView } from '../schema';
import { difference } from './comparison';
import type { Tone } from './format';
import type { Look } from './verbs';
import { trans } from './words';

/** One of two candidates that are compared, of one run or of two. */
export interface ISide {
  /** Its id, with the title of its run where there are two runs. */
  name: string;
  view: RunView;
  candidate: CandidateView;
  look: Look | null;
}

export interface IPair {
  key: string;
  label: string;
  before: MetricView | undefined;
  after: MetricView | undefined;
  change: { text: string; tone: Tone } | null;
  /** Why there is no change of two numbers; empty where there is one. */
  reason: string;
}

/** The device of its verdict and time, without the number that it has in its machine. */
export function deviceOf({ view, candidate }: ISide): string {
  const told = candidate.evidence.find(row => row.key === 'device')?.value ?? view.settings.device;
  return told.replace(/^cuda:\d+ /, '');
}

/** Whether both runs have the same reference and are timed on the same workloads. */
export function sameProblem(one: RunView, other: RunView): boolean {
  const texts = ({ problem }: RunView) =>
    JSON.stringify([problem.code || problem.source.trim(), problem.workloads.map(each => each.text)]);
  return one === other || texts(one) === texts(other);
}

/** Why two times are not compared; empty where they are. What has a basis is a time, or depends on one. */
function reasonAgainst(old: MetricView, now: MetricView, before: ISide, after: ISide): string {
  if (old.basis === '' && now.basis === '') {
    return '';
  }
  if (old.basis !== now.basis) {
    return trans.__('not compared: one is measured, one predicted');
  }
  const alike = deviceOf(before) === deviceOf(after) && before.view.settings.gpu === after.view.settings.gpu;
  return alike ? '' : trans.__('not compared: different devices');
}

/**
 * The numbers of two candidates by key, in the order of the first; one that only the second has stands where it has it.
 * Those of different problems are not compared.
 */
export function paired(
  before: ISide,
  after: ISide,
  numbersOf: (side: ISide) => readonly MetricView[]
): IPair[] {
  const keyed = (side: ISide) => new Map(numbersOf(side).map(metric => [metric.key, metric]));
  const [olds, news] = [keyed(before), keyed(after)];
  const comparable = sameProblem(before.view, after.view);
  const keys = [...olds.keys()];
  [...news.keys()].forEach((key, at, all) => {
    if (!olds.has(key)) {
      keys.splice(keys.indexOf(all[at - 1] ?? '') + 1, 0, key);
    }
  });
  return keys.map(key => {
    const [old, now] = [olds.get(key), news.get(key)];
    const both = old && now && comparable;
    const reason = both ? reasonAgainst(old, now, before, after) : '';
    const change = both && reason === '' ? difference(now, old) : null;
    return { key, label: (now ?? old)?.label ?? key, before: old, after: now, change, reason };
  });
}

/** The parameters whose values differ; an empty text where one of the two has none. */
export function changedValues(before: CandidateView, after: CandidateView): ConfigChange[] {
  const values = ({ config }: CandidateView) => new Map(config.map(each => [each.name, String(each.value)]));
  const [olds, news] = [values(before), values(after)];
  return [...new Set([...news.keys(), ...olds.keys()])]
    .filter(name => olds.get(name) !== news.get(name))
    .map(name => ({ name, old: olds.get(name) ?? '', new: news.get(name) ?? '' }));
}
