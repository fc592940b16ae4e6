import type { AnyModel } from '@anywidget/types';
import type { Ask, IAnswer, IBackend, Look } from './run/verbs';
import { trans } from './run/words';

interface IReply {
  request_id: string;
  ok: boolean;
  error: string;
  data?: unknown;
}

function isReply(content: unknown): content is IReply {
  const reply = content as Partial<IReply> | null;
  return typeof reply === 'object' && reply !== null && typeof reply.request_id === 'string';
}

/** Answers sent over a widget's comm, each matched with the kernel's reply by its id. */
export class Requests implements IBackend {
  constructor(private readonly model: Pick<AnyModel, 'on' | 'off' | 'send'>) {
    model.on('msg:custom', this.onMessage);
  }

  get isDisposed(): boolean {
    return this.disposed;
  }

  /** Resolves once the kernel took the answer; rejects with its message where it did not. */
  readonly ask: Ask = async (answer: IAnswer) => {
    await this.request({ text: '', target_id: null, ...answer });
  };

  /** Resolves with what the kernel found; rejects with its message where it found nothing. */
  readonly look: Look = query => this.request({ ...query });

  private request(message: Record<string, unknown>): Promise<unknown> {
    if (this.disposed) {
      return Promise.reject(
        new Error(trans.__('This view is closed; open the run again with `%cutegen show`.'))
      );
    }
    const id = `${this.name}-${this.count++}`;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.model.send({ ...message, request_id: id });
    });
  }

  dispose(): void {
    if (this.disposed) {
      return;
    }
    this.disposed = true;
    this.model.off('msg:custom', this.onMessage);
    for (const { reject } of this.waiting.values()) {
      reject(new Error(trans.__('The view was closed before the kernel answered.')));
    }
    this.waiting.clear();
  }

  private readonly onMessage = (content: unknown): void => {
    if (!isReply(content)) {
      return;
    }
    const waiting = this.waiting.get(content.request_id);
    this.waiting.delete(content.request_id);
    if (content.ok) {
      waiting?.resolve(content.data);
    } else {
      waiting?.reject(new Error(content.error || trans.__('The kernel refused, and gave no reason.')));
    }
  };

  // Two views of one model hear each other's replies; crypto.randomUUID is missing on plain HTTP.
  private readonly name = Math.random().toString(36).slice(2);
  private count = 0;
  private disposed = false;
  private readonly waiting = new Map<
    string,
    { resolve: (data: unknown) => void; reject: (error: Error) => void }
  >();
}
