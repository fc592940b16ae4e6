import { COMMANDS, currentKeys, type Command } from './keys';
import { trans } from './words';

/** The keys, as they are set on this page. */
export function Keys({ onClose }: { onClose: () => void }) {
  const keys = currentKeys();
  return (
    <section class="cg-keys" aria-label={trans.__('Keys')}>
      <dl>
        {(Object.keys(COMMANDS) as Command[]).map(command => (
          <div key={command}>
            <dt>
              <kbd>{keys[command]}</kbd>
            </dt>
            <dd>{COMMANDS[command]}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>↑ ↓ ← →</kbd>
          </dt>
          <dd>{trans.__('move in the lineage and along the tabs; Enter selects, Ctrl-Enter compares')}</dd>
        </div>
      </dl>
      <div class="cg-row">
        <span class="cg-muted">{trans.__('JupyterLab: Settings, CuTeGen changes them.')}</span>
        <span class="cg-spacer" />
        <button type="button" class="cg-button cg-small" onClick={onClose}>
          {trans.__('Close')}
        </button>
      </div>
    </section>
  );
}
