import { EditorState, type Extension } from '@codemirror/state';
import { trans } from '../run/words';

/** CodeMirror's own texts, as far as texts here show or say them; it fills "$". */
export function phrases(): Extension {
  return EditorState.phrases.of({
    '$ unchanged lines': trans.__('$ unchanged lines'),
    'Control character': trans.__('Control character'),
    'Selection deleted': trans.__('Selection deleted'),
    'Go to line': trans.__('Go to line'),
    go: trans.__('go'),
    Find: trans.__('Find'),
    Replace: trans.__('Replace'),
    next: trans.__('next'),
    previous: trans.__('previous'),
    all: trans.__('all'),
    'match case': trans.__('match case'),
    regexp: trans.__('regexp'),
    'by word': trans.__('by word'),
    replace: trans.__('replace'),
    'replace all': trans.__('replace all'),
    close: trans.__('close'),
    'current match': trans.__('current match'),
    'on line': trans.__('on line'),
    'replaced match on line $': trans.__('replaced match on line $'),
    'replaced $ matches': trans.__('replaced $ matches'),
    Diagnostics: trans.__('Diagnostics'),
    'No diagnostics': trans.__('No diagnostics')
  });
}
