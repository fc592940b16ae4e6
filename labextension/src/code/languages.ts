import { python } from '@codemirror/lang-python';
import { StreamLanguage, type StreamParser } from '@codemirror/language';
import type { Extension } from '@codemirror/state';

/** PTX: directives, opcodes with their modifiers, registers, labels. PTX ISA, chapter "Syntax". */
const ptx: StreamParser<{ head: boolean }> = {
  name: 'ptx',
  startState: () => ({ head: true }),
  token(stream, state) {
    if (stream.sol()) {
      state.head = true;
    }
    if (stream.eatSpace()) {
      return null;
    }
    if (stream.match('//')) {
      stream.skipToEnd();
      return 'comment';
    }
    if (stream.match(/^"[^"]*"?/)) {
      return 'string';
    }
    if (stream.match(/^\.[a-z]\w*/)) {
      return 'modifier';
    }
    if (stream.match(/^%\w+(\.\w+)?/)) {
      return 'variableName';
    }
    if (stream.match(/^@!?/)) {
      return 'operator';
    }
    if (stream.match(/^[$\w]+:/)) {
      return 'labelName';
    }
    if (stream.match(/^(0[xX][\da-fA-F]+U?|0[fFdD][\da-fA-F]+|\d[\d.]*)/)) {
      return 'number';
    }
    if (state.head && stream.match(/^[a-z][\w.:]*/)) {
      state.head = false;
      return 'keyword';
    }
    if (stream.match(/^[$\w]+/)) {
      return null;
    }
    state.head = ';{}'.includes(stream.next() ?? '');
    return null;
  }
};

/** SASS as nvdisasm writes it, behind its address. */
const sass: StreamParser<{ head: boolean }> = {
  name: 'sass',
  startState: () => ({ head: true }),
  token(stream, state) {
    if (stream.sol()) {
      state.head = true;
      if (stream.match(/^[\da-f]{4,}\b/)) {
        return 'comment';
      }
    }
    if (stream.eatSpace()) {
      return null;
    }
    if (stream.match(/^(`\()?\.L_\w+\)?:?/)) {
      return 'labelName';
    }
    if (stream.match(/^@!?U?P\w+/)) {
      return 'operator';
    }
    if (stream.match(/^(-?0x[\da-f]+|[-+]?\d[\d.]*(e[-+]?\d+)?)\b/)) {
      return 'number';
    }
    if (state.head && stream.match(/^[A-Z][\w.]*/)) {
      state.head = false;
      return 'keyword';
    }
    if (stream.match(/^(U?[RP](Z|T|\d+)|SR_[\w.]+|desc|c)\b/)) {
      return 'variableName';
    }
    if (stream.match(/^\w[\w.]*/)) {
      return null;
    }
    stream.next();
    return null;
  }
};

export type Language = 'python' | 'ptx' | 'sass';

const LANGUAGES: Record<Language, () => Extension> = {
  python,
  ptx: () => StreamLanguage.define(ptx),
  sass: () => StreamLanguage.define(sass)
};

export function languageOf(name: Language): Extension {
  return LANGUAGES[name]();
}
