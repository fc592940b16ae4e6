import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Language } from './languages';
import { linkedLines, markLines, selectedLines } from './marks';
import { common, readOnly } from './setup';

interface IPaneProps {
  label: string;
  text: string;
  language: Language;
  /** What else it shows: a gutter, a comparison. Made anew only where it differs. */
  extra?: Extension;
  /** Lines that belong to what is pointed at. */
  linked: readonly number[];
  /** Counts up where the first of these is to be scrolled to. */
  reveal: number;
  onHover: (line: number | null) => void;
  onPick: (line: number) => void;
  /** The first and last line of what is selected. */
  onSelect?: (first: number, last: number) => void;
}

/** A text to read: coloured, with its lines numbered and linked to those of other texts. */
export function Pane(props: IPaneProps) {
  const { label, text, language, extra = [], linked, reveal, onHover, onPick, onSelect } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const more = useRef(new Compartment());
  const now = useRef({ extra, onHover, onPick, onSelect });
  now.current = { extra, onHover, onPick, onSelect };
  const configured = useRef(extra);
  const revealed = useRef(reveal);
  useLayoutEffect(() => {
    const parent = host.current;
    if (parent === null) {
      return;
    }
    configured.current = now.current.extra;
    const root = parent.getRootNode();
    const made = new EditorView({
      parent,
      root: root instanceof ShadowRoot ? root : document,
      state: EditorState.create({
        doc: text,
        extensions: [
          more.current.of(now.current.extra), // its gutters stand left of the numbers
          common(language, label),
          readOnly,
          linkedLines(
            line => now.current.onHover(line),
            line => now.current.onPick(line)
          ),
          selectedLines((first, last) => now.current.onSelect?.(first, last))
        ]
      })
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [text, language, label]);
  useEffect(() => {
    if (configured.current !== extra) {
      configured.current = extra;
      view.current?.dispatch({ effects: more.current.reconfigure(extra) });
    }
  }, [extra]);
  useEffect(() => {
    if (view.current !== null) {
      markLines(view.current, linked, reveal !== revealed.current);
      revealed.current = reveal;
    }
  }, [linked, reveal, text]);
  return <div class="cg-pane" ref={host} />;
}
