import { trans } from './words';

/** Has the browser save a text as a file. */
export function saveText(name: string, text: string, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}

interface ISaveProps {
  /** What saves a picture, by its format. */
  formats: Readonly<Record<string, () => void>>;
  error?: string;
}

/** Buttons that save a picture as a file. */
export function Save({ formats, error }: ISaveProps) {
  return (
    <div class="cg-row" role="group" aria-label={trans.__('Save')}>
      <span aria-hidden="true">{trans.__('Save')}</span>
      {Object.entries(formats).map(([format, save]) => (
        <button key={format} type="button" class="cg-button cg-small" onClick={save}>
          {format}
        </button>
      ))}
      <span role="status">{error}</span>
    </div>
  );
}
