import { python } from '@codemirror/lang-python';
import { ensureSyntaxTree } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { highlightTree, tagHighlighter, tags } from '@lezer/highlight';
import { Signal } from '@lumino/signaling';
import { describe, expect, it, vi } from 'vitest';
import { specInCells, SpecCells } from '../src/lab/spec-cells';

const STYLE = tagHighlighter([
  { tag: tags.meta, class: 'meta' },
  { tag: tags.keyword, class: 'keyword' },
  { tag: tags.atom, class: 'atom' },
  { tag: tags.number, class: 'number' },
  { tag: tags.string, class: 'string' },
  { tag: tags.comment, class: 'comment' },
  { tag: tags.operator, class: 'operator' },
  { tag: tags.standard(tags.variableName), class: 'builtin' },
  { tag: tags.definition(tags.variableName), class: 'defined' }
]);

/** What is coloured in a Python editor that may turn to specs: each piece of text with its class. */
function colours(state: EditorState): [string, string][] {
  const tree = ensureSyntaxTree(state, state.doc.length, 5000);
  if (tree === null) {
    throw new Error('the text was not parsed in time');
  }
  const found: [string, string][] = [];
  highlightTree(tree, STYLE, (from, to, name) => found.push([state.sliceDoc(from, to), name]));
  return found;
}

function cell(doc: string): EditorState {
  return EditorState.create({ doc, extensions: [python(), specInCells] });
}

describe('a cell that begins with %%cutespec', () => {
  it('is shown in the spec’s colours', () => {
    const text = [
      '%%cutespec --check',
      'kernel linear for sm_90a in tf32',
      'in  x: bf16[M, 256]  # an input',
      'out y: f32 = gelu(x @ w.T + 1e-6, approximate="tanh")',
      'size M=4096',
      'tile 128x128x64',
      'with threads_per_row=32'
    ].join('\n');
    expect(colours(cell(text))).toEqual([
      ['%%cutespec --check', 'meta'],
      ['kernel', 'keyword'],
      ['for', 'keyword'],
      ['sm_90a', 'atom'],
      ['in', 'keyword'],
      ['tf32', 'atom'],
      ['in', 'keyword'],
      ['bf16', 'builtin'],
      ['256', 'number'],
      ['# an input', 'comment'],
      ['out', 'keyword'],
      ['f32', 'builtin'],
      ['=', 'operator'],
      ['gelu', 'builtin'],
      ['@', 'operator'],
      ['+', 'operator'],
      ['1e-6', 'number'],
      ['=', 'operator'],
      ['"tanh"', 'string'],
      ['size', 'keyword'],
      ['=', 'operator'],
      ['4096', 'number'],
      ['tile', 'keyword'],
      ['128x128x64', 'number'],
      ['with', 'keyword'],
      ['=', 'operator'],
      ['32', 'number']
    ]);
  });

  it('may belong to a kernel that has not said its language yet', () => {
    const none = EditorState.create({ doc: 'x = 1', extensions: [specInCells] });
    expect(colours(none)).toEqual([]);
    const spec = none.update({ changes: { from: 0, to: 5, insert: '%%cutespec\nkernel k' } }).state;
    expect(colours(spec)).toContainEqual(['kernel', 'keyword']);
  });

  it('may have blank lines above its magic, as IPython allows', () => {
    expect(colours(cell('\n\n%%cutespec\nkernel k'))).toContainEqual(['kernel', 'keyword']);
  });

  it('takes a value that is called as a statement for a value', () => {
    expect(colours(cell('%%cutespec\nsplit = x * 2'))).not.toContainEqual(['split', 'keyword']);
  });
});

describe('any other cell', () => {
  const PYTHON = 'def reference(x):\n    return x + 1\n';

  it('stays as its own language shows it', () => {
    const plain = EditorState.create({ doc: PYTHON, extensions: [python()] });
    expect(colours(cell(PYTHON))).toEqual(colours(plain));
    expect(colours(cell(PYTHON))).toContainEqual(['def', 'keyword']);
    expect(colours(cell('%%cutespecial\ndef f(): ...'))).toContainEqual(['def', 'keyword']);
  });

  it('is Python below %%cutegen', () => {
    const body = colours(EditorState.create({ doc: PYTHON, extensions: [python()] }));
    const magic = '%%cutegen --name softmax --inputs "x: bf16[4096, 8192]" --arch sm_90a\n';
    expect(colours(cell(magic + PYTHON)).slice(-body.length)).toEqual(body);
  });

  it('changes with its first line, and back', () => {
    const before = cell(PYTHON);
    const spec = before.update({ changes: { from: 0, insert: '%%cutespec\n' } }).state;
    expect(colours(spec)).not.toContainEqual(['def', 'keyword']);
    const after = spec.update({ changes: { from: 0, to: '%%cutespec\n'.length } }).state;
    expect(colours(after)).toEqual(colours(before));
  });
});

describe('the cells of a notebook', () => {
  const made = (type: string) => ({
    model: { type },
    ready: Promise.resolve(),
    editor: { injectExtension: vi.fn() }
  });

  it('are each given the colours once, those added later too; texts are left alone', async () => {
    const changed = new Signal<unknown, unknown>({});
    const [code, text, later] = [made('code'), made('markdown'), made('code')];
    const widgets = [code, text];
    const cells = new SpecCells({ widgets, model: { cells: { changed } } });
    await Promise.resolve();
    widgets.push(later);
    changed.emit(undefined);
    await Promise.resolve();
    expect(code.editor.injectExtension).toHaveBeenCalledExactlyOnceWith(specInCells);
    expect(later.editor.injectExtension).toHaveBeenCalledExactlyOnceWith(specInCells);
    expect(text.editor.injectExtension).not.toHaveBeenCalled();
    cells.dispose();
    widgets.push(made('code'));
    changed.emit(undefined);
    await Promise.resolve();
    expect(widgets.at(-1)?.editor.injectExtension).not.toHaveBeenCalled();
  });
});
