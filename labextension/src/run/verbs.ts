import type { RunView } from '../schema';

export type Verb = RunView['verbs'][number];

/** What the analyst says to the kernel about a run. */
export interface IAnswer {
  verb: Verb;
  candidate_id: string | null;
  text?: string;
  target_id?: string;
}

/** Sends an answer; resolves once the kernel took it, rejects with the kernel's own message. */
export type Ask = (answer: IAnswer) => Promise<void>;
