import { VERBS, type Command, type Query, type Verb } from '../schema';

export type { Verb };

/** What the analyst says to the kernel about a run. */
export type IAnswer = Pick<Command, 'verb' | 'candidate_id'> & Partial<Pick<Command, 'text' | 'target_id'>>;

/** Sends an answer; resolves once the kernel took it, rejects with the kernel's own message. */
export type Ask = (answer: IAnswer) => Promise<void>;

/** What a view does not contain. */
export type IQuery = Omit<Query, 'request_id' | 'general' | 'text'> & Partial<Query>;

/** Asks for what a view does not contain; resolves with it, rejects with the message of the kernel or server. */
export type Look = (query: IQuery) => Promise<unknown>;

/** What stands behind a view: a kernel, or the server, which hears no answers. */
export interface IBackend {
  /** null where no kernel hears answers. */
  ask: Ask | null;
  look: Look;
}

/** The label of a verb's button, about candidate `id`, and its help. */
export function buttonOf(verb: Verb, id: string): { label: string; help: string } {
  return VERBS[verb](id);
}
