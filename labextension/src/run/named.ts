import type { CandidateView, DiagnosticView, EvidenceRow } from '../schema';
import { shownLines, type Same } from './notes';

/** "line N" of the source in a text from Python, as the odd parts of a split. */
const LINE = /(?<!PTX )\b([Ll]ine \d+)\b/;

/** `text` in parts; each second one names the line that stands beside it. */
export function partsOf(text: string): { part: string; line: number | null }[] {
  return text.split(LINE).map((part, index) => ({ part, line: index % 2 ? Number(part.slice(5)) : null }));
}

/** Lines of the source that a row of the evidence names. */
export function linesOf({ label, value, detail }: EvidenceRow): number[] {
  return partsOf([label, value, detail].join('\n')).flatMap(({ line }) => line ?? []);
}

const saidBy = ({ code, message }: DiagnosticView) => [code, message].filter(Boolean).join(' ');

/** By line of the source: the diagnostics, rows of the evidence and notes that name it, in this order. */
export function saidOfLines(candidate: CandidateView, same: Same): Map<number, string[]> {
  const said = new Map<number, string[]>();
  const add = (line: number, text: string) => said.set(line, [...(said.get(line) ?? []), text]);
  candidate.diagnostics.filter(item => item.line > 0).forEach(item => add(item.line, saidBy(item)));
  for (const row of candidate.evidence) {
    const text = [row.label, row.value, row.detail].filter(Boolean).join(' · ');
    new Set(linesOf(row)).forEach(line => add(line, text));
  }
  for (const note of candidate.notes) {
    const lines = shownLines(note, same);
    if (lines !== null) {
      add(lines.first, note.text || note.what.replaceAll('`', ''));
    }
  }
  return said;
}
