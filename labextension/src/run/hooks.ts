import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

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
