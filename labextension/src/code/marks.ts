import { RangeSet, StateEffect, StateField, type Extension } from '@codemirror/state';
import { Decoration, EditorView, gutter, GutterMarker, hoverTooltip } from '@codemirror/view';
import { trans } from '../run/words';
import type { HeatColumn } from '../schema';

const NUMBER = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });
const LINKED = Decoration.line({ class: 'cg-cm-linked' });
const setLinked = StateEffect.define<readonly number[]>();

/** Lines that belong to the one that is pointed at in another text. */
const linked = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) {
      if (effect.is(setLinked)) {
        const { doc } = change.state;
        const within = effect.value.filter(line => line >= 1 && line <= doc.lines);
        return Decoration.set(within.map(line => LINKED.range(doc.line(line).from)));
      }
    }
    return marks.map(change.changes);
  },
  provide: field => EditorView.decorations.from(field)
});

/** Shows which lines belong together, and tells where the pointer is and what is clicked. */
export function linkedLines(
  onHover: (line: number | null) => void,
  onPick: (line: number) => void
): Extension {
  const lineAt = (view: EditorView, event: MouseEvent): number | null => {
    const at = view.posAtCoords({ x: event.clientX, y: event.clientY });
    return at === null ? null : view.state.doc.lineAt(at).number;
  };
  return [
    linked,
    EditorView.domEventHandlers({
      mousemove: (event, view) => onHover(lineAt(view, event)),
      mouseleave: () => onHover(null),
      click: (event, view) => {
        const line = lineAt(view, event);
        if (line !== null) {
          onPick(line);
        }
      }
    })
  ];
}

/** Tells the first and last line of each selection. One that ends before the first character of a line leaves that out. */
export function selectedLines(onSelect: (first: number, last: number) => void): Extension {
  return EditorView.updateListener.of(({ selectionSet, state }) => {
    if (selectionSet) {
      const { from, to } = state.selection.main;
      const first = state.doc.lineAt(from).number;
      const end = state.doc.lineAt(to);
      onSelect(first, end.number > first && end.from === to ? end.number - 1 : end.number);
    }
  });
}

/** Draws a bar of its class beside the lines of each of `ranges`. */
export function barredLines(ranges: readonly { first: number; last: number; class: string }[]): Extension {
  return EditorView.decorations.of(view => {
    const { doc } = view.state;
    const lines = ranges.flatMap(each =>
      Array.from({ length: Math.max(0, Math.min(each.last, doc.lines) - each.first + 1) }, (_, index) =>
        Decoration.line({ class: each.class }).range(doc.line(each.first + index).from)
      )
    );
    return Decoration.set(lines, true);
  });
}

/** Marks `lines`; scrolls to the first of them where `reveal` says so. */
export function markLines(view: EditorView, lines: readonly number[], reveal: boolean): void {
  const effects: StateEffect<unknown>[] = [setLinked.of(lines)];
  const first = lines[0];
  if (reveal && first !== undefined && first <= view.state.doc.lines) {
    effects.push(EditorView.scrollIntoView(view.state.doc.line(first).from, { y: 'center' }));
  }
  view.dispatch({ effects });
}

class Figure extends GutterMarker {
  constructor(
    private readonly text: string,
    private readonly share: number
  ) {
    super();
  }
  override eq(other: Figure): boolean {
    return other.text === this.text && other.share === this.share;
  }
  override toDOM(): Node {
    const element = document.createElement('span');
    element.className = 'cg-heat';
    element.style.setProperty('--cg-heat', `${Math.round(100 * this.share)}%`);
    element.textContent = this.text;
    return element;
  }
}

/** A gutter with a figure beside each of `values`' lines, as warm as its share of the largest. */
function figures(values: ReadonlyMap<number, number>, format: (value: number) => string): Extension {
  const most = Math.max(0, ...values.values());
  return gutter({
    class: 'cg-heat-gutter',
    markers: view => {
      const doc = view.state.doc;
      const within = [...values].filter(([line]) => line >= 1 && line <= doc.lines).sort(([a], [b]) => a - b);
      return RangeSet.of(
        within.map(([line, value]) =>
          new Figure(format(value), most ? value / most : 0).range(doc.line(line).from)
        )
      );
    }
  });
}

/** A line's share of a resource, in percent. */
export function heatOf(column: HeatColumn, line: number): string {
  const share = (100 * (column.lines[line] ?? 0)) / column.total;
  return share === 0 ? '0%' : share < 0.1 ? '<0.1%' : `${share < 10 ? share.toFixed(1) : share.toFixed(0)}%`;
}

/** The heat of `column` beside the lines; all `columns` of a line in a tooltip. */
export function heatGutter(column: HeatColumn, columns: readonly HeatColumn[]): Extension {
  const values = new Map(Object.entries(column.lines).map(([line, value]) => [Number(line), value]));
  return [
    figures(values, value => heatOf({ ...column, lines: { 0: value } }, 0)),
    hoverTooltip((view, position) => {
      const at = view.state.doc.lineAt(position);
      const said = columns.filter(each => each.lines[at.number]);
      if (said.length === 0) {
        return null;
      }
      return {
        pos: at.from,
        above: true,
        create: () => {
          const dom = document.createElement('div');
          dom.className = 'cg-heat-tip';
          for (const each of said) {
            const row = dom.appendChild(document.createElement('div'));
            const figure = NUMBER.format(each.lines[at.number] ?? 0);
            row.textContent = trans.__('%1 of %2 (%3)', heatOf(each, at.number), each.unit, figure);
          }
          return { dom };
        }
      };
    })
  ];
}

/** Stall counts beside instructions. */
export function stallGutter(stalls: ReadonlyMap<number, number>): Extension {
  return figures(stalls, String);
}
