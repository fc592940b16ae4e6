import type { Extension } from '@codemirror/state';
import { Decoration, EditorView, WidgetType } from '@codemirror/view';
import { trans } from '../run/words';

type OnOpen = (line: number) => void;

class Said extends WidgetType {
  constructor(
    private readonly line: number,
    private readonly texts: readonly string[],
    private readonly onOpen: OnOpen
  ) {
    super();
  }
  override eq(other: Said): boolean {
    return other.line === this.line && other.texts.join('\n') === this.texts.join('\n');
  }
  override toDOM(): HTMLElement {
    const button = document.createElement('button');
    const count = this.texts.length;
    const name = trans._n(
      '%1 entry of the evidence names line %2',
      '%1 entries of the evidence name line %2',
      count,
      this.line
    );
    button.type = 'button';
    button.className = 'cg-said';
    button.dataset.count = String(count); // drawn by the style sheet, so that it is no text of the line
    button.ariaLabel = name;
    button.title = [name, ...this.texts].join('\n');
    button.addEventListener('click', () => this.onOpen(this.line));
    return button;
  }
}

/**
 * A button at the start of each line that is named in `said`, which tells what is said of it. Gutters are hidden from
 * screen readers and the keyboard: these stand in a column of their own within the text.
 */
export function saidLines(said: ReadonlyMap<number, readonly string[]>, onOpen: OnOpen): Extension {
  if (said.size === 0) {
    return [];
  }
  return [
    EditorView.contentAttributes.of({ class: 'cg-cm-said' }),
    EditorView.decorations.of(({ state: { doc } }) =>
      Decoration.set(
        [...said]
          .filter(([line]) => line >= 1 && line <= doc.lines)
          .map(([line, texts]) =>
            Decoration.widget({ widget: new Said(line, texts, onOpen), side: -1 }).range(doc.line(line).from)
          ),
        true
      )
    )
  ];
}
