import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import type { LayoutPicture, LayoutsView } from '../schema';
import { useAnswer } from './answer';
import { Save, saveText } from './saving';
import { Tables } from './tables';
import type { ITabProps } from './tabs';
import type { Look } from './verbs';
import { trans } from './words';

const SVG = 'http://www.w3.org/2000/svg';
/** What a drawing is made of: elements, and their attributes. */
const ELEMENTS = new Set(['svg', 'title', 'desc', 'style', 'rect', 'g', 'text', 'line']);
const ATTRIBUTES = new Set([
  ...['class', 'id', 'role', 'aria-labelledby', 'width', 'height', 'viewBox', 'font-family', 'font-size'],
  ...['x', 'y', 'x1', 'y1', 'x2', 'y2', 'xmlns']
]);

/** A drawing of the kernel as an element; whatever is none of a drawing's own parts is left out. */
export function drawingOf(text: string): Element | null {
  const { documentElement: root } = new DOMParser().parseFromString(text, 'image/svg+xml');
  const clean = (element: Element): boolean => {
    if (element.namespaceURI !== SVG || !ELEMENTS.has(element.localName)) {
      return false;
    }
    for (const { name } of [...element.attributes]) {
      if (!ATTRIBUTES.has(name)) {
        element.removeAttribute(name);
      }
    }
    [...element.children].filter(child => !clean(child)).forEach(child => child.remove());
    return true;
  };
  return clean(root) && root.localName === 'svg' ? root : null;
}

interface ILayoutsProps {
  id: string;
  look: Look;
  /** The run that the candidate is of: names files. */
  run: string;
}

function Picture({ id, look, run, number }: ILayoutsProps & { number: number }) {
  const place = useRef<HTMLDivElement>(null);
  const { found, error } = useAnswer<LayoutPicture>(look, `${id} ${number}`, {
    query: 'layout',
    candidate_id: id,
    text: String(number)
  });
  const drawing = useMemo(() => found && drawingOf(found.svg), [found]);
  useEffect(
    () => place.current?.replaceChildren(...(drawing ? [document.importNode(drawing, true)] : [])),
    [drawing]
  );
  if (found === null) {
    return (
      <p class="cg-empty" role="status">
        {error || trans.__('Drawing…')}
      </p>
    );
  }
  return (
    <>
      <div class="cg-scroll cg-drawing" role="group" aria-label={found.title} tabIndex={0} ref={place} />
      {drawing && (
        <Save
          formats={{
            SVG: () =>
              saveText(
                `${run}-${id}-layout-${number}.svg`,
                new XMLSerializer().serializeToString(drawing),
                'image/svg+xml'
              )
          }}
        />
      )}
      <Tables
        tables={found.tables.map(({ title, rows: [heads = [], ...rows] }) => ({ title, heads, rows }))}
      />
    </>
  );
}

function linesOf(lines: readonly number[]): string {
  const first = lines.slice(0, 4).join(', ');
  if (lines.length > 4) {
    return trans.__('lines %1 and %2 more', first, lines.length - 4);
  }
  return lines.length === 0 ? '' : trans._n('line %2', 'lines %2', lines.length, first);
}

/** The layouts that a candidate makes and uses, and a picture of the chosen one. */
export function Layouts({ id, look, run }: ILayoutsProps) {
  const name = useId();
  const [picked, setPicked] = useState<number | null>(null);
  const { found, error } = useAnswer<LayoutsView>(look, id, { query: 'layouts', candidate_id: id });
  if (found === null) {
    return (
      <p class="cg-empty" role="status">
        {error || trans.__('Compiling %1 for its layouts…', id)}
      </p>
    );
  }
  if (found.layouts.length === 0) {
    return (
      <p class="cg-empty">
        {trans.__('%1 makes no layout whose extents are known when it is compiled.', id)}
      </p>
    );
  }
  const chosen = picked ?? found.opens_at;
  return (
    <section class="cg-layouts" aria-label={trans.__('Layouts')}>
      <fieldset class="cg-choices cg-layout-list">
        <legend>
          {trans.__('Layouts of %1', id)} <span class="cg-count">{found.layouts.length}</span>
        </legend>
        {found.layouts.map(({ layout, what, lines, text }, at) => (
          <label key={at} title={text}>
            <input
              type="radio"
              name={name}
              value={at}
              checked={at === chosen}
              onChange={() => setPicked(at)}
            />
            <code>{layout}</code>
            <span class="cg-muted">{[what, linesOf(lines)].filter(Boolean).join(' · ')}</span>
          </label>
        ))}
      </fieldset>
      <Picture key={chosen} id={id} number={chosen} look={look} run={run} />
    </section>
  );
}

/** The layouts of the selected candidate as a tab. They are asked for when it is first shown. */
export function LayoutsTab({ view, candidate, look }: ITabProps) {
  const compiled = candidate.steps.some(step => step.step === 'compile' && step.status === 'done');
  if (look === null || !compiled) {
    return (
      <p class="cg-empty">
        {look === null
          ? trans.__(
              'Layouts are shown while a kernel is attached: the candidate is compiled again for them.'
            )
          : trans.__('%1 is not compiled.', candidate.id)}
      </p>
    );
  }
  return <Layouts key={candidate.id} id={candidate.id} look={look} run={view.run_id} />;
}
