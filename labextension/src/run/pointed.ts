import type { RefObject } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';

const POINTED = 'cg-pointed';

/** The class of what is pointed at. */
export function pointedAt(here: boolean): string {
  return here ? POINTED : '';
}

/**
 * A line of the source whose diagnostics, evidence and notes are marked, 0 for none, and what points at another: the
 * first of these is scrolled to and gets the focus, and what it is folded away in opens. Forgotten with the candidate.
 */
export function usePointed(root: RefObject<HTMLElement | null>, of: string) {
  const [asked, setAsked] = useState({ line: 0, of: '' });
  const point = useCallback((line: number) => setAsked({ line, of }), [of]);
  useEffect(() => {
    const first = asked.line > 0 ? root.current?.querySelector<HTMLElement>(`.${POINTED}`) : null;
    if (first) {
      first.closest('details')?.setAttribute('open', '');
      first.scrollIntoView({ block: 'center' });
      first.focus({ preventScroll: true });
    }
  }, [asked, root]);
  return { pointed: asked.of === of ? asked.line : 0, point };
}
