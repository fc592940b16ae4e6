import type { CandidateView, EvidenceRow, RunView, StepView } from '../schema';
import { trans } from './words';

/** "wrong_result" as a reader's words. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

/** "3 of at most 8 candidates"; what the analyst edits is judged beyond that. */
export function candidates(count: number, most: number): string {
  return count <= most
    ? trans.__('%1 of at most %2 candidates', count, most)
    : trans.__('%1 candidates, edits beyond the %2', count, most);
}

/** What kind of time one is. */
export function basisWord(basis: EvidenceRow['basis']): string {
  switch (basis) {
    case 'measured':
      return trans.__('measured');
    case 'predicted':
      return trans.__('predicted');
    case 'bound':
      return trans.__('bound');
    case '':
      return '';
  }
}

/** 0.42 s · 8.1 s · 3 min 05 s */
export function seconds(value: number): string {
  if (value < 10) {
    return `${value.toFixed(value < 1 ? 2 : 1)} s`;
  }
  if (value < 60) {
    return `${Math.round(value)} s`;
  }
  const whole = Math.round(value);
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
}

/** Three significant digits, without an exponent where a reader expects none. */
export function significant(value: number): string {
  if (value === 0) {
    return '0';
  }
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) {
    return value.toExponential(1).replace('e+', 'e');
  }
  return String(Number(value.toPrecision(3)));
}

export function microseconds(value: number): string {
  return value >= 1000 ? `${significant(value / 1000)} ms` : `${significant(value)} µs`;
}

/**
 * How long a step has been running. The kernel's clock may be ahead of or behind the browser's, so never less than
 * what the kernel itself last said.
 */
export function elapsed(step: StepView, nowMs: number): number | null {
  if (step.status === 'running' && step.started_at !== null) {
    return Math.max(step.seconds ?? 0, nowMs / 1000 - step.started_at);
  }
  return step.seconds;
}

export type Tone = 'neutral' | 'good' | 'bad' | 'warn';

/** Drawn round where it passed, square where it failed, and dashed while that is not known. */
export type Shape = 'full' | 'ring' | 'square' | 'dashed';

/** A candidate's standing as a mark, a shape, a word and a tone; never colour alone. */
export function standing(candidate: CandidateView): { mark: string; shape: Shape; word: string; tone: Tone } {
  if (candidate.accepted) {
    return { mark: '✓', shape: 'full', word: trans.__('accepted'), tone: 'good' };
  }
  if (candidate.verdict === 'passed') {
    return candidate.answer.startsWith('rejected')
      ? { mark: '–', shape: 'ring', word: trans.__('rejected'), tone: 'neutral' }
      : { mark: '✓', shape: 'ring', word: trans.__('passed'), tone: 'good' };
  }
  if (candidate.verdict !== '') {
    return { mark: '✕', shape: 'square', word: words(candidate.verdict), tone: 'bad' };
  }
  const running = candidate.steps.find(step => step.status === 'running');
  return running
    ? { mark: '…', shape: 'dashed', word: running.step, tone: 'neutral' }
    : { mark: '', shape: 'dashed', word: trans.__('no verdict yet'), tone: 'neutral' };
}

/** What the run is doing, in one line for people and screen readers. */
export function statusLine(view: RunView): { word: string; detail: string; tone: Tone } {
  switch (view.status) {
    case 'running':
      return { word: trans.__('Running'), detail: view.step, tone: 'neutral' };
    case 'review':
      return {
        word: trans.__('Your review'),
        detail: view.current_id === null ? '' : trans.__('candidate %1', view.current_id),
        tone: 'warn'
      };
    case 'interrupted':
      return { word: trans.__('Interrupted'), detail: trans.__('at %1', view.step), tone: 'warn' };
    case 'done':
      return {
        word: trans.__('Done'),
        detail: words(view.outcome),
        tone: view.outcome === 'accepted' ? 'good' : view.outcome === 'failed' ? 'bad' : 'neutral'
      };
  }
}

/**
 * How many times longer a candidate takes than another (the current kernel); null where either has no time, or one is
 * measured and the other predicted.
 */
export function timeRatio(view: RunView, id: string, than: string | null = view.incumbent_id): number | null {
  const point = (of: string | null) => view.trend.find(each => each.candidate_id === of);
  const mine = point(id);
  const other = point(than);
  if (id === than || !mine?.time_us || !other?.time_us || mine.basis !== other.basis) {
    return null;
  }
  return mine.time_us / other.time_us;
}

/** Whether the templates propose the run's kernels. */
export function byTemplates({ settings }: RunView): boolean {
  return settings.provider.split(':')[0] === 'templates';
}

/** How far a ratio is from one that is shown as none. */
const AS_MUCH = 0.0005;

/** The same of times, of which three digits are shown: 3.01 µs is not called faster than 3.01 µs. */
const AS_FAST = 0.005;

/** "3.2%", "47%": how far a ratio is from one. */
export function percent(ratio: number): string {
  const size = Math.abs(ratio - 1) * 100;
  return `${size < 9.95 ? size.toFixed(1) : Math.round(size)}%`;
}

/** "+3.2%", "−47%", "=": how a ratio differs from one. */
export function change(ratio: number): string {
  return Math.abs(ratio - 1) < AS_MUCH ? '=' : `${ratio > 1 ? '+' : '−'}${percent(ratio)}`;
}

/** Whether a ratio of times is shown as slower. */
export function slower(ratio: number): boolean {
  return ratio - 1 >= AS_FAST;
}

function chosen(ratio: number, same: string, more: string, less: string): string {
  return Math.abs(ratio - 1) < AS_FAST ? same : ratio > 1 ? more : less;
}

/** "3.2% slower than c1", "as fast as c1": a ratio of times in words. */
export function compared(ratio: number, other: string): string {
  const by = percent(ratio);
  return chosen(
    ratio,
    trans.__('as fast as %1', other),
    trans.__('%1 slower than %2', by, other),
    trans.__('%1 faster than %2', by, other)
  );
}

/** The same as a sentence: "c2 is 3.2% slower than c1". */
export function standsTo(id: string, ratio: number, other: string): string {
  const by = percent(ratio);
  return chosen(
    ratio,
    trans.__('%1 is as fast as %2', id, other),
    trans.__('%1 is %2 slower than %3', id, by, other),
    trans.__('%1 is %2 faster than %3', id, by, other)
  );
}

/** Of the candidate that is spoken of: "it is 3.2% slower than c1". */
export function itStandsTo(ratio: number, other: string): string {
  const by = percent(ratio);
  return chosen(
    ratio,
    trans.__('it is as fast as %1', other),
    trans.__('it is %1 slower than %2', by, other),
    trans.__('it is %1 faster than %2', by, other)
  );
}

/** In the row of what it stands beside: "c2 is 3.2% slower than it". */
export function beside(id: string, ratio: number): string {
  const by = percent(ratio);
  return chosen(
    ratio,
    trans.__('%1 is as fast as it', id),
    trans.__('%1 is %2 slower than it', id, by),
    trans.__('%1 is %2 faster than it', id, by)
  );
}
