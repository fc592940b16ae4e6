import type { TranslationBundle } from '@jupyterlab/translation';
import { significant, words, type Tone } from '../run/format';
import type { RunRow } from '../schema';

/** A run's state as a mark, words and a tone; never colour alone. */
export function standingOf(
  row: RunRow,
  trans: TranslationBundle
): { mark: string; word: string; tone: Tone } {
  switch (row.status) {
    case 'running':
      return { mark: '…', word: trans.__('Running · %1', row.step), tone: 'neutral' };
    case 'review':
      return { mark: '!', word: trans.__('Awaits you'), tone: 'warn' };
    case 'interrupted':
      return { mark: '‖', word: trans.__('Interrupted · at %1', row.step), tone: 'warn' };
    case 'done': {
      const mark = row.outcome === 'accepted' ? '✓' : row.outcome === 'failed' ? '✕' : '–';
      const tone = row.outcome === 'accepted' ? 'good' : row.outcome === 'failed' ? 'bad' : 'neutral';
      return { mark, word: trans.__('Done · %1', words(row.outcome)), tone };
    }
  }
}

function rounded(value: number): string {
  return significant(Number(value.toPrecision(3)));
}

/** "2.5× c1 (predicted)", "1.3× eager", "35.1 µs (predicted)"; empty before there is a time. */
export function bestOf(row: RunRow, trans: TranslationBundle): string {
  const kind = row.best_kind === 'predicted' ? ` (${trans.__('predicted')})` : '';
  if (row.speedup !== null && row.over !== '') {
    return `${rounded(row.speedup)}× ${row.over}${kind}`;
  }
  return row.best_us === null ? '' : `${rounded(row.best_us)} µs${kind}`;
}

const UNITS: readonly [number, Intl.RelativeTimeFormatUnit][] = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute']
];

/** "now", "3 min ago", "yesterday", in the language of the page. */
export function ago(at: number, nowMs: number, language?: string): string {
  const seconds = nowMs / 1000 - at;
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  for (const [size, unit] of UNITS) {
    if (seconds >= size) {
      return format.format(-Math.floor(seconds / size), unit);
    }
  }
  return format.format(0, 'second');
}

/** What identifies a run among those of all stores. */
export function keyOf({ store, run_id }: Pick<RunRow, 'store' | 'run_id'>): string {
  return JSON.stringify([store, run_id]);
}
