import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { describe, expect, it, vi } from 'vitest';
import { drawingOf, Layouts, LayoutsTab } from '../src/run/layouts';
import type { Look } from '../src/run/verbs';
import type { LayoutPicture, LayoutsView } from '../src/schema';
import { host } from './host';
import { button, unattached } from './samples';

const answer = (name: string): unknown =>
  JSON.parse(readFileSync(resolve(import.meta.dirname, `answers/${name}.json`), 'utf8'));
/** What Python says of a candidate whose text has a line that looks like HTML (tests/packaging/make_samples.py). */
const LISTED = answer('layouts') as LayoutsView;
const PICTURES = answer('layout_pictures') as LayoutPicture[];

const answering = () =>
  vi.fn<Look>(({ query, text }) => Promise.resolve(query === 'layouts' ? LISTED : PICTURES[Number(text)]));

function show(look: Look, id = 'c5'): void {
  void act(() => render(<Layouts id={id} look={look} run="softmax-1" />, host));
}

const drawn = (number: number) =>
  vi.waitFor(
    () => expect(host.querySelector('.cg-drawing svg title')?.textContent).toBe(PICTURES[number]?.title),
    { timeout: 5000 } // the first drawing loads the parser
  );

describe('the layouts of a candidate', () => {
  it('are listed with their lines, and the one that says most is drawn', async () => {
    const look = answering();
    show(look);
    await drawn(LISTED.opens_at);
    expect([...host.querySelectorAll('code')].map(code => code.textContent)).toEqual(
      LISTED.layouts.map(each => each.layout)
    );
    expect(host.querySelector('label')?.textContent).toContain('bf16 tensor in shared memory · lines 2, 3');
    expect(look.mock.calls.map(([query]) => [query.query, query.text])).toEqual([
      ['layouts', undefined],
      ['layout', String(LISTED.opens_at)]
    ]);
    expect(host.querySelectorAll('.cg-drawing .o').length).toBeGreaterThan(0);
  });

  it('are drawn one by one as they are chosen, and never asked for again while one is shown', async () => {
    const look = answering();
    show(look);
    await drawn(LISTED.opens_at);
    host.querySelectorAll<HTMLInputElement>('input')[2]?.click();
    await drawn(2);
    expect(look.mock.lastCall?.[0]).toMatchObject({ query: 'layout', candidate_id: 'c5', text: '2' });
    expect(look).toHaveBeenCalledTimes(3);
    expect(host.querySelector('.cg-drawing')?.getAttribute('aria-label')).toBe(PICTURES[2]?.title);
    expect(host.querySelectorAll('table')).toHaveLength(PICTURES[2]?.tables.length ?? 0);
  });

  it('are saved as they are drawn, as a picture of its own', async () => {
    show(answering());
    await drawn(LISTED.opens_at);
    const files: string[] = [];
    const made = vi.fn((file: Blob) => `blob:${file.type}`);
    vi.stubGlobal('URL', Object.assign(URL, { createObjectURL: made, revokeObjectURL: vi.fn() }));
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
      files.push(`${this.href} ${this.download}`);
    });
    button(host, 'SVG').click();
    expect(files).toEqual(['blob:image/svg+xml softmax-1-c5-layout-4.svg']);
    const reader = new FileReader();
    reader.readAsText(made.mock.calls[0]?.[0] as Blob);
    await vi.waitFor(() => expect(reader.result).toContain('</svg>'));
    expect(drawingOf(reader.result as string)?.outerHTML).toBe(
      drawingOf(PICTURES[LISTED.opens_at]?.svg ?? '')?.outerHTML
    );
    vi.restoreAllMocks();
  });

  it('show text of a candidate as text', async () => {
    expect(LISTED.layouts.some(each => each.text.includes('<img'))).toBe(true);
    show(answering());
    await drawn(LISTED.opens_at);
    expect(host.querySelector('img')).toBeNull();
  });

  it('say why there are none', async () => {
    show(() => Promise.reject(new Error('c5 does not compile')));
    await vi.waitFor(() =>
      expect(host.querySelector('[role=status]')?.textContent).toBe('c5 does not compile')
    );
    show(() => Promise.resolve({ candidate_id: 'c6', layouts: [] }), 'c6');
    await vi.waitFor(() => expect(host.textContent).toContain('c6 makes no layout'));
  });

  it('wait for a kernel in a saved run', () => {
    void act(() => render(<LayoutsTab {...unattached('review')} />, host));
    expect(host.textContent).toContain('while a kernel is attached');
  });
});

describe('a drawing', () => {
  it('keeps all that the kernel draws', () => {
    for (const { svg } of PICTURES) {
      const whole = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
      expect(drawingOf(svg)?.outerHTML).toBe(whole.outerHTML);
    }
  });

  it('loses what could run or load', () => {
    const found = drawingOf(
      '<svg xmlns="http://www.w3.org/2000/svg" onload="pwned=1"><script>pwned=1</script><g onclick="pwned=1">' +
        '<rect class="c" style="fill:url(http://x)"/><image href="http://x"/></g>' +
        '<foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="x"/></foreignObject></svg>'
    );
    expect(found?.outerHTML).toBe('<svg xmlns="http://www.w3.org/2000/svg"><g><rect class="c"/></g></svg>');
  });

  it('is none if it is no SVG', () => {
    expect(drawingOf('<html xmlns="http://www.w3.org/1999/xhtml"/>')).toBeNull();
    expect(drawingOf('nothing')).toBeNull();
  });
});
