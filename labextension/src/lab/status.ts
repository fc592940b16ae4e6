import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { Changes } from '../schema';

/** The device, and how many runs are at work or need an answer; a button that shows them. */
export class StatusItem extends Widget {
  constructor(
    private readonly trans: TranslationBundle,
    onClick: () => void
  ) {
    super();
    this.addClass('cg-statusbar');
    this.button = document.createElement('button');
    this.button.type = 'button';
    this.button.addEventListener('click', onClick);
    this.node.append(this.button);
    this.show_(null);
  }

  /** Shows what the server said last; null where it says nothing. */
  show_(changes: Changes | null): void {
    const { trans } = this;
    const parts = changes ? [`CuTeGen: ${changes.machine}`] : [trans.__('CuTeGen: not connected')];
    if (changes?.running) {
      parts.push(trans.__('%1 running', changes.running));
    }
    const waiting = changes?.awaiting.length ?? 0;
    if (waiting) {
      parts.push(trans._n('%1 awaits you', '%1 await you', waiting));
    }
    this.button.textContent = parts.join(' · ');
    this.button.title = trans.__('Show the runs');
    this.button.classList.toggle('cg-statusbar-waits', waiting > 0);
  }

  private readonly button: HTMLButtonElement;
}
