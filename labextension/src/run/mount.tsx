import { render } from 'preact';
import { useMemo } from 'preact/hooks';
import type { IAway } from './away';
import { useWords } from './hooks';
import { RunPanel } from './panel';
import { readRun } from './read';
import type { IBackend } from './verbs';

interface IRunProps {
  data: unknown;
  backend: IBackend | null;
  awaited: boolean;
  away: IAway | null;
}

/** A run, or why it cannot be shown. */
function Run({ data, ...given }: IRunProps) {
  const words = useWords();
  // What cannot be shown is said in words too.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const read = useMemo(() => readRun(data), [data, words]);
  return 'problem' in read ? (
    <article class="cg-root">
      <p class="cg-note" role="status">
        {read.problem}
      </p>
    </article>
  ) : (
    <RunPanel view={read.view} {...given} />
  );
}

/**
 * Shows a run in `host`, or says why it cannot be shown; call again to update, and `unmount` to let go.
 * `awaited`: a live view may be about to take this one's place. `away`: how to get to where it can be answered.
 */
export function mount(
  host: HTMLElement,
  data: unknown,
  backend: IBackend | null,
  awaited = false,
  away: IAway | null = null
): void {
  render(<Run data={data} backend={backend} awaited={awaited} away={away} />, host);
}

export function unmount(host: HTMLElement): void {
  render(null, host);
}
