import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Ask, IAnswer } from './verbs';
import { trans } from './words';

/** How long an answer may stay unheard before we say what that may mean. */
const SILENCE_MS = 5000;

interface ISending {
  busy: boolean;
  message: string;
  failed: boolean;
  send: (answer: IAnswer) => Promise<boolean>;
}

/** One answer at a time; what the kernel says about it, or that it says nothing. */
export function useSending(ask: Ask): ISending {
  const [state, setState] = useState({ busy: false, message: '', failed: false });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
      clearTimeout(timer.current);
    };
  }, []);
  const settle = (next: typeof state) => {
    clearTimeout(timer.current);
    if (alive.current) {
      setState(next);
    }
  };
  const send = async (answer: IAnswer): Promise<boolean> => {
    settle({ busy: true, message: trans.__('Sending…'), failed: false });
    timer.current = setTimeout(
      () =>
        settle({
          busy: false,
          message: trans.__('No answer from the kernel yet: it may be busy, or gone.'),
          failed: true
        }),
      SILENCE_MS
    );
    try {
      await ask(answer);
      settle({ busy: false, message: '', failed: false });
      return true;
    } catch (error) {
      settle({ busy: false, message: error instanceof Error ? error.message : String(error), failed: true });
      return false;
    }
  };
  return { ...state, send };
}

interface IPromptProps {
  label: string;
  children: ComponentChildren;
  onCancel: () => void;
}

/** A question under the action bar; Escape takes it back. */
export function Prompt({ label, children, onCancel }: IPromptProps) {
  return (
    <div
      class="cg-prompt"
      role="group"
      aria-label={label}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          onCancel();
        }
      }}
    >
      {children}
    </div>
  );
}
