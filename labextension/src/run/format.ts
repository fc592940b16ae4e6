import type { CandidateView, RunView, StepView } from '../schema';

/** "wrong_result" as a reader's words. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
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

/** A candidate's standing as a mark, a word and a tone; never colour alone. */
export function standing(candidate: CandidateView): { mark: string; word: string; tone: Tone } {
  if (candidate.accepted) {
    return { mark: '✓', word: 'accepted', tone: 'good' };
  }
  if (candidate.verdict === 'passed') {
    return candidate.answer.startsWith('rejected')
      ? { mark: '–', word: 'rejected', tone: 'neutral' }
      : { mark: '✓', word: 'passed', tone: 'good' };
  }
  if (candidate.verdict !== '') {
    return { mark: '✕', word: words(candidate.verdict), tone: 'bad' };
  }
  const running = candidate.steps.find(step => step.status === 'running');
  return running
    ? { mark: '…', word: running.step, tone: 'neutral' }
    : { mark: '○', word: 'no verdict yet', tone: 'neutral' };
}

/** What the run is doing, in one line for people and screen readers. */
export function statusLine(view: RunView): { word: string; detail: string; tone: Tone } {
  switch (view.status) {
    case 'running':
      return { word: 'Running', detail: view.step, tone: 'neutral' };
    case 'review':
      return {
        word: 'Your review',
        detail: view.current_id === null ? '' : `candidate ${view.current_id}`,
        tone: 'warn'
      };
    case 'interrupted':
      return { word: 'Interrupted', detail: `at ${view.step}`, tone: 'warn' };
    case 'done':
      return {
        word: 'Done',
        detail: words(view.outcome),
        tone: view.outcome === 'accepted' ? 'good' : view.outcome === 'failed' ? 'bad' : 'neutral'
      };
  }
}

/** How far a candidate stands from the trunk: a second child of a parent starts a branch, a first one continues. */
export function branchDepths(candidates: readonly CandidateView[]): Map<string, number> {
  const depths = new Map<string, number>();
  const children = new Map<string, number>();
  for (const { id, parent_id: parent } of candidates) {
    if (parent === null) {
      depths.set(id, 0);
      continue;
    }
    const siblings = children.get(parent) ?? 0;
    children.set(parent, siblings + 1);
    depths.set(id, (depths.get(parent) ?? 0) + (siblings > 0 ? 1 : 0));
  }
  return depths;
}
