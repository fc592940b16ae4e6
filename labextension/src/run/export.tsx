import { useState } from 'preact/hooks';
import type { ExportView } from '../schema';
import type { Look } from './verbs';
import { trans } from './words';

/** Formats in which a candidate, or its run, is written as files, beside the notebook or the store. */
export function Export({ id, look }: { id: string; look: Look }) {
  const [formats, setFormats] = useState<ExportView['formats']>([]);
  const [message, setMessage] = useState('');
  const [busy, setBusy] = useState(false);
  const ask = async (format: string) => {
    setBusy(true);
    setMessage(format ? trans.__('Writing %1…', format) : '');
    try {
      const found = (await look({ query: 'export', candidate_id: id, text: format })) as ExportView;
      setFormats(found.formats);
      setMessage(found.paths.length ? trans.__('Wrote %1.', found.paths.join(', ')) : '');
    } catch (error) {
      setMessage(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <details
      class="cg-details cg-export"
      onToggle={event => {
        if (event.currentTarget.open && formats.length === 0) {
          void ask('');
        }
      }}
    >
      <summary>{trans.__('Export %1', id)}</summary>
      <ul aria-label={trans.__('Export formats of %1', id)}>
        {formats.map(({ name, suffix, help, needs }) => (
          <li key={name}>
            <button
              type="button"
              class="cg-button cg-small"
              disabled={busy}
              title={trans.__('Needs %1', needs)}
              onClick={() => void ask(name)}
            >
              {name}
            </button>
            <span>{`${suffix}: ${help}`}</span>
          </li>
        ))}
      </ul>
      <p role="status">{message}</p>
    </details>
  );
}
