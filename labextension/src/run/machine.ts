import { useEffect, useState } from 'preact/hooks';
import type { ListingLine, MachineCodeView } from '../schema';
import type { Look } from './verbs';
import { trans } from './words';

export const attached = () => trans.__('Shown while a kernel is attached');

interface ICode {
  loading: boolean;
  code: MachineCodeView | null;
  error: string;
}

/** PTX and SASS of a candidate, asked for once they are `wanted`. */
export function useMachineCode(id: string, general: boolean, wanted: boolean, look: Look | null): ICode {
  const [known, setKnown] = useState<ICode & { key: string }>({
    key: '',
    loading: false,
    code: null,
    error: ''
  });
  const key = `${id} ${general}`;
  useEffect(() => {
    if (!wanted || look === null || known.key === key) {
      return;
    }
    setKnown({ key, loading: true, code: null, error: '' });
    const settle = (found: Partial<ICode>) =>
      setKnown(now => (now.key === key ? { key, loading: false, code: null, error: '', ...found } : now));
    look({ query: 'machine_code', candidate_id: id, general }).then(
      data => settle({ code: data as MachineCodeView }),
      (error: unknown) => settle({ error: error instanceof Error ? error.message : String(error) })
    );
  }, [wanted, look, key, known.key, id, general]);
  return known.key === key ? known : { loading: wanted && look !== null, code: null, error: '' };
}

export const textOf = (lines: readonly ListingLine[]) => lines.map(line => line.text).join('\n');
