import { useEffect, useState } from 'preact/hooks';
import type { Look } from './verbs';

interface IAnswer<T> {
  found: T | null;
  error: string;
}

export const messageOf = (reason: unknown) => (reason instanceof Error ? reason.message : String(reason));

/** The answer to one query, asked for when `key` changes; the one before is kept until it is there. */
export function useAnswer<T>(look: Look, key: string, query: Parameters<Look>[0]): IAnswer<T> {
  const [answer, setAnswer] = useState<IAnswer<T>>({ found: null, error: '' });
  useEffect(() => {
    let gone = false;
    const settle = (found: T | null, error: string) => gone || setAnswer({ found, error });
    look(query).then(
      data => settle(data as T, ''),
      (reason: unknown) => settle(null, messageOf(reason))
    );
    return () => {
      gone = true;
    };
    // `key` says all of the query.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [look, key]);
  return answer;
}
