import type { StepView } from '../schema';
import { elapsed, seconds } from './format';
import { useNow } from './hooks';
import { trans } from './words';

const MARKS: Record<StepView['status'], string> = {
  pending: '○',
  running: '●',
  done: '✓',
  failed: '✕',
  skipped: '–'
};

function statusWord(status: StepView['status']): string {
  switch (status) {
    case 'pending':
      return trans.__('pending');
    case 'running':
      return trans.__('running');
    case 'done':
      return trans.__('done');
    case 'failed':
      return trans.__('failed');
    case 'skipped':
      return trans.__('skipped');
  }
}

interface ITimelineProps {
  steps: readonly StepView[];
  label: string;
  /** Whether clocks tick: a saved run stands still. */
  live: boolean;
  /** Whether the candidate awaits the analyst's review. */
  awaited?: boolean;
}

/** generate → compile → check → time → profile → review, each with its status in words and its seconds. */
export function Timeline({ steps, label, live, awaited = false }: ITimelineProps) {
  const now = useNow(live && steps.some(step => step.status === 'running'));
  return (
    <ol class="cg-timeline" aria-label={label}>
      {steps.map(step => {
        const yours = awaited && step.step === 'review' && ['pending', 'running'].includes(step.status);
        const time = yours ? null : live ? elapsed(step, now) : step.seconds;
        return (
          <li key={step.step} class={`cg-step cg-step-${yours ? 'yours' : step.status}`} title={step.detail}>
            <span class="cg-step-name">
              <span class="cg-step-mark" aria-hidden="true">
                {yours ? '●' : MARKS[step.status]}
              </span>
              {step.step}
            </span>
            <span class="cg-step-state">
              {yours ? trans.__('awaits you') : statusWord(step.status)}
              {time === null ? '' : ` · ${seconds(time)}`}
            </span>
            {step.detail && <span class="cg-step-detail">{step.detail}</span>}
          </li>
        );
      })}
    </ol>
  );
}
