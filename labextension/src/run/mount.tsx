import { render } from 'preact';
import type { IAway } from './away';
import { RunPanel } from './panel';
import { readRun } from './read';
import type { IKernel } from './verbs';

/**
 * Shows a run in `host`, or says why it cannot be shown; call again to update, and `unmount` to let go.
 * `awaited`: a live view may be about to take this one's place. `away`: how to get to where it can be answered.
 */
export function mount(
  host: HTMLElement,
  data: unknown,
  kernel: IKernel | null,
  awaited = false,
  away: IAway | null = null
): void {
  const read = readRun(data);
  if ('problem' in read) {
    render(
      <article class="cg-root">
        <p class="cg-note" role="status">
          {read.problem}
        </p>
      </article>,
      host
    );
  } else {
    render(<RunPanel view={read.view} kernel={kernel} awaited={awaited} away={away} />, host);
  }
}

export function unmount(host: HTMLElement): void {
  render(null, host);
}
