import { MIME_TYPE } from './run/read';

/**
 * The widget's word to whatever page it is in that its run rests: a DOM event that bubbles, with the run's static forms
 * by MIME type. JupyterLab's output keeps them, so that what is saved is what was last seen, also after a page reload,
 * when the kernel's own display updates no longer find the output.
 */
export const REST_EVENT = 'cutegen-rest';

export type IStaticForms = Record<'text/plain' | 'text/html', string> & Record<typeof MIME_TYPE, object>;

function moment(run: unknown): string {
  const { updated_at, status } = (run ?? {}) as Record<string, unknown>;
  return JSON.stringify([updated_at, status]);
}

/** Whether both show the run at the same moment. */
export function sameMoment(run: unknown, other: unknown): boolean {
  return moment(run) === moment(other);
}

/** What a rest event carries, or null where it is not one of ours. */
export function readRest(event: Event): IStaticForms | null {
  const detail: unknown = event instanceof CustomEvent ? event.detail : null;
  const forms = (detail ?? {}) as Partial<IStaticForms>;
  const whole =
    typeof forms['text/plain'] === 'string' &&
    typeof forms['text/html'] === 'string' &&
    typeof forms[MIME_TYPE] === 'object';
  return whole ? (forms as IStaticForms) : null;
}

/** Tells the page around `host`. */
export function announceRest(host: HTMLElement, forms: IStaticForms): void {
  host.dispatchEvent(new CustomEvent(REST_EVENT, { bubbles: true, detail: forms }));
}
