import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/** A call `trans.__(one, …)` or `trans._n(one, many, …)`; a text that is no literal is null, and no tool finds it. */
export interface IAsked {
  one: string | null;
  /** undefined for `__`. */
  many?: string | null;
  /** The call as it is written. */
  call: string;
}

/** The texts that a file asks for, as JupyterLab's tools find them. */
function textsIn(path: string): IAsked[] {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  const literal = (node?: ts.Node) => (node && ts.isStringLiteralLike(node) ? node.text : null);
  const found: IAsked[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { text: name } = node.expression.name;
      const [first, second] = node.arguments;
      const call = `${path}: ${node.getText(source)}`;
      if (name === '__') {
        found.push({ one: literal(first), call });
      } else if (name === '_n') {
        found.push({ one: literal(first), many: literal(second), call });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const inFolder = (folder: string) => readdirSync(folder).map(name => `${folder}/${name}`);

/** Of the sidebar, tabs, status bar and commands, which have JupyterLab's translator. */
export const askedByLab = () => ['src/lab', 'src/runs'].flatMap(inFolder).flatMap(textsIn);

/** Of the run view, which has the words that are left on its page. */
export const askedByView = () =>
  [
    ...['src/run', 'src/code'].flatMap(inFolder),
    ...readdirSync('src', { withFileTypes: true }).flatMap(each =>
      each.isFile() ? [`src/${each.name}`] : []
    )
  ].flatMap(textsIn);

/**
 * The catalogue of a language that has each literal part of a text in marks: what is filled in stands outside of them,
 * and so do the backticks around what is to be typed.
 */
export function pseudo(): Record<string, string[]> {
  const marked = (text: string) =>
    text.replace(
      /(%\d+|`)|((?:(?!%\d|`)[^])+)/g,
      (_, place?: string, part?: string) => place ?? `⟦${part ?? ''}⟧`
    );
  return Object.fromEntries(
    askedByView().map(({ one, many }) => {
      const forms = [one, many].filter(each => typeof each === 'string');
      return [one ?? '', forms.map(marked)];
    })
  );
}
