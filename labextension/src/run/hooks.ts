import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { hearWords } from './words';

/** The time in ms, ticking while `active`. Whole seconds only: a calm display that costs nothing. */
export function useNow(active: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!active) {
      return;
    }
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

/** Draws again when the page's words come after the view; counts how often they did. */
export function useWords(): number {
  const [count, setCount] = useState(0);
  useLayoutEffect(() => hearWords(() => setCount(now => now + 1)), []);
  return count;
}

/** Keeps the focus in `root` when what had it goes away with an answer; otherwise it would fall to the page's body. */
export function useKeptFocus(root: RefObject<HTMLElement | null>): void {
  const inside = useRef(false);
  useEffect(() => {
    const element = root.current;
    if (element === null) {
      return;
    }
    const enter = () => {
      inside.current = true;
    };
    const leave = (event: FocusEvent) => {
      const left = event.target as Node;
      // A moment later it shows whether it was left, or taken out of the page.
      queueMicrotask(() => {
        if (left.isConnected && !element.contains(document.activeElement)) {
          inside.current = false;
        }
      });
    };
    const observer = new MutationObserver(() => {
      if (inside.current && document.activeElement === document.body) {
        element.focus({ preventScroll: true });
      }
    });
    observer.observe(element, { childList: true, subtree: true });
    element.addEventListener('focusin', enter);
    element.addEventListener('focusout', leave);
    return () => {
      observer.disconnect();
      element.removeEventListener('focusin', enter);
      element.removeEventListener('focusout', leave);
    };
  }, [root]);
}

/** Never lower than it has been: what stands below does not jump when an answer takes evidence away. */
export function useLatchedHeight(root: RefObject<HTMLElement | null>): void {
  const highest = useRef(0);
  useLayoutEffect(() => {
    if (root.current) {
      highest.current = Math.max(highest.current, root.current.offsetHeight);
      root.current.style.minHeight = `${highest.current}px`;
    }
  });
}

const TEXTS = 'input, textarea, select, .cm-editor';

/**
 * Keeps the host's shortcuts (Lumino's) away from keys that are the widget's: Enter and letters on its buttons, and what
 * its texts edit and search with. The others stay the host's: those with Ctrl, Cmd or Alt outside of texts, and Ctrl-S,
 * which saves the notebook, in texts too.
 */
export function useHostShortcuts(root: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    // Lumino hears keys on the document before they arrive here: the window hears them first.
    const decide = (event: KeyboardEvent) => {
      const target = event.target instanceof Element ? event.target : null;
      const saves = event.key.toLowerCase() === 's';
      const inText = Boolean(target?.closest(TEXTS));
      const commanded = event.ctrlKey || event.metaKey;
      const hosts = inText ? commanded && saves : commanded || event.altKey;
      root.current?.toggleAttribute('data-lm-suppress-shortcuts', !hosts);
      // Lumino looks upwards no further than to what a shortcut is for, and JupyterLab's for cells (X cuts one) are for
      // whatever has the focus. A code pane is left alone: its notebook knows that one types there.
      if (target && root.current?.contains(target) && !target.closest('.cm-editor')) {
        target.toggleAttribute('data-lm-suppress-shortcuts', !hosts);
      }
    };
    window.addEventListener('keydown', decide, true);
    return () => window.removeEventListener('keydown', decide, true);
  }, [root]);
}
