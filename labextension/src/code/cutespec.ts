import { StreamLanguage, type StreamParser } from '@codemirror/language';

// tests/packaging/test_schema.py compares these two with cutegen_lab/cutespec.
const STATEMENTS = /^(?:kernel|in|out|tmp|size|step|tile|cluster|schedule|stages|split|align|with)\b(?!\s*=)/;
const DTYPES = /^(?:bf16|f16|f32|f64|f8e4m3fn|f8e5m2|i8|i32|i64|bool)\b/;

const NUMBER = /^(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+(?:\s*x\s*\d+)*)/;

interface IState {
  /** Whether nothing but space stands before, on this line. */
  first: boolean;
}

/** The spec language; its grammar is cutegen_lab/cutespec/grammar.lark. The magic of a notebook's cell may be above. */
export const cutespecParser: StreamParser<IState> = {
  name: 'cutespec',
  languageData: { commentTokens: { line: '#' } },
  startState: () => ({ first: true }),
  token(stream, state) {
    if (stream.sol()) {
      state.first = true;
    }
    if (stream.eatSpace()) {
      return null;
    }
    const { first } = state;
    state.first = false;
    if (stream.match('#')) {
      stream.skipToEnd();
      return 'comment';
    }
    if (first && stream.match('%%')) {
      stream.skipToEnd();
      return 'meta';
    }
    if (first && stream.match(STATEMENTS)) {
      return 'keyword';
    }
    if (stream.match(/^(?:for(?=\s+sm_)|in(?=\s+tf32\b))/)) {
      return 'keyword';
    }
    if (stream.match(/^(?:sm_\d+[a-z]?|tf32|true|false)\b/)) {
      return 'atom';
    }
    if (stream.match(DTYPES)) {
      return 'variableName.standard'; // as Python's built-in names
    }
    if (stream.match(/^"[^"]*"?/)) {
      return 'string';
    }
    if (stream.match(NUMBER)) {
      return 'number';
    }
    if (stream.match(/^[A-Za-z_]\w*(?=\s*\()/)) {
      return 'variableName.standard';
    }
    if (stream.match(/^[A-Za-z_]\w*/)) {
      return 'variableName';
    }
    if (stream.match(/^(?:\*\*|[<>=!]=|[-+*/@<>=])/)) {
      return 'operator';
    }
    stream.next();
    return null;
  }
};

export const cutespec = StreamLanguage.define(cutespecParser);
