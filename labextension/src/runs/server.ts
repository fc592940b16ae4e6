import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';
import type { IQuery } from '../run/verbs';
import type { Changes, RunKey, RunList, RunRow, TutorialView } from '../schema';

/** What of the list is asked for; see `ListQuery` in cutegen_lab/server/handlers.py. */
export interface IListQuery {
  q?: string;
  problem?: string;
  status?: string;
  gpu?: string;
  since?: number;
  trashed?: boolean;
  folder?: string;
  limit?: number;
}

/** What may be asked of the server. */
export interface IRunServer {
  list(query: IListQuery): Promise<RunList>;
  view(key: RunKey): Promise<unknown>;
  change(key: RunKey, change: { title?: string; trashed?: boolean }): Promise<RunRow>;
}

const SLOWEST_MS = 30_000;

/** The server extension: REST, and the stream of changes, which is opened again when it breaks. */
export class RunServer implements IRunServer, IDisposable {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  /** Emitted at first, and after each change of a run; null when the stream breaks. */
  get changes(): ISignal<this, Changes | null> {
    return this._changes;
  }

  /** What the stream said last; null while there is none. */
  get latest(): Changes | null {
    return this._latest;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  list(query: IListQuery): Promise<RunList> {
    return this.ask('runs', { ...query }) as Promise<RunList>;
  }

  view({ store, run_id }: RunKey): Promise<unknown> {
    return this.ask('run', { store, id: run_id });
  }

  change({ store, run_id }: RunKey, change: { title?: string; trashed?: boolean }): Promise<RunRow> {
    return this.ask('run', { store, id: run_id }, 'PATCH', change) as Promise<RunRow>;
  }

  /** What a view of a run asks beside it. */
  look({ store, run_id }: RunKey, query: IQuery): Promise<unknown> {
    return this.ask('run', { store, id: run_id }, 'POST', { request_id: '', ...query });
  }

  archive(path: string): Promise<unknown> {
    return this.ask('archive', { path });
  }

  /** As `look`, of the run in a file. */
  lookInto(path: string, query: IQuery): Promise<unknown> {
    return this.ask('archive', { path }, 'POST', { request_id: '', ...query });
  }

  tutorials(): Promise<TutorialView[]> {
    return this.ask('tutorials', {}) as Promise<TutorialView[]>;
  }

  tutorial(name: string): Promise<unknown> {
    return this.ask('tutorials', { name });
  }

  /** Follows the stream; the server looks every `seconds`. */
  follow(seconds: number): void {
    this.seconds = seconds;
    this.connect();
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this.timer);
    this.leave();
    Signal.clearData(this);
  }

  private async ask(name: string, query: object, method = 'GET', body?: object): Promise<unknown> {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
    const url = `${URLExt.join(this.settings.baseUrl, 'cutegen', name)}${URLExt.objectToQueryString(
      Object.fromEntries(given.map(([key, value]) => [key, String(value)]))
    )}`;
    const init = { method, ...(body && { body: JSON.stringify(body) }) };
    const response = await ServerConnection.makeRequest(url, init, this.settings);
    const text = await response.text();
    let told: unknown = null;
    try {
      told = JSON.parse(text);
    } catch {
      // A page of a proxy, or of a server without the extension.
    }
    if (!response.ok) {
      const message = (told as { message?: unknown } | null)?.message;
      throw new ServerConnection.ResponseError(response, typeof message === 'string' ? message : '');
    }
    return told;
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.leave();
    if (this._isDisposed) {
      return;
    }
    const { wsUrl, token, appendToken } = this.settings;
    const query = { seconds: String(this.seconds), ...(appendToken && token ? { token } : {}) };
    const url = `${URLExt.join(wsUrl, 'cutegen', 'events')}${URLExt.objectToQueryString(query)}`;
    const socket = new this.settings.WebSocket(url);
    socket.onmessage = event => {
      this.waitMs = 1000;
      this.tell(JSON.parse(String(event.data)) as Changes);
    };
    socket.onclose = () => {
      this.tell(null);
      this.timer = setTimeout(() => this.connect(), this.waitMs);
      this.waitMs = Math.min(2 * this.waitMs, SLOWEST_MS);
    };
    this.socket = socket;
  }

  private leave(): void {
    if (this.socket !== null) {
      this.socket.onclose = null;
      this.socket.close();
      this.socket = null;
    }
  }

  private tell(changes: Changes | null): void {
    this._latest = changes;
    this._changes.emit(changes);
  }

  private readonly _changes = new Signal<this, Changes | null>(this);
  private _latest: Changes | null = null;
  private _isDisposed = false;
  private seconds = 1;
  private waitMs = 1000;
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
}
