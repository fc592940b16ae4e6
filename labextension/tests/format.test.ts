import { describe, expect, it } from 'vitest';
import {
  candidates,
  change,
  compared,
  elapsed,
  microseconds,
  seconds,
  significant,
  timeRatio
} from '../src/run/format';
import { axis } from '../src/run/trend';
import { QUICKSTART, notebookOf } from '../src/lab/notebook';
import { sample } from './samples';

describe('numbers', () => {
  it('of candidates, of which the analyst may edit more than were asked for', () => {
    expect(candidates(3, 8)).toBe('3 of at most 8 candidates');
    expect(candidates(5, 4)).toBe('5 candidates, edits beyond the 4');
  });

  it.each([
    [0.42, '0.42 s'],
    [8.06, '8.1 s'],
    [59.4, '59 s'],
    [185, '3 min 05 s']
  ])('%d seconds', (value, text) => expect(seconds(value)).toBe(text));

  it.each([
    [0, '0'],
    [0.00171, '0.00171'],
    [5.7e-7, '5.7e-7'],
    [38.149, '38.1'],
    [123456, '1.2e5']
  ])('%d to three digits', (value, text) => expect(significant(value)).toBe(text));

  it('microseconds become milliseconds', () => expect(microseconds(1715)).toBe('1.72 ms'));

  it("a running step's clock is never behind what the kernel said", () => {
    const step = { step: 'check', status: 'running', seconds: 5, started_at: 1000, detail: '' } as const;
    expect(elapsed(step, 1_009_000)).toBe(9);
    expect(elapsed(step, 1_001_000)).toBe(5);
  });
});

describe('axes', () => {
  it('holds every error between whole decades', () => {
    const { low, high, ticks } = axis([1.7e-3, 2.4e-2], true);
    expect([low, high]).toEqual([1e-3, 1e-1]);
    expect(ticks).toHaveLength(3);
  });
  it('has a height when all values are one', () => {
    const { low, high } = axis([40], false);
    expect(high).toBeGreaterThan(low);
  });
});

describe('a time beside the current kernel', () => {
  const run = sample('review');
  const point = { verdict: 'passed', error: null, torch_error: null, sol_gap: null };
  const beside = (basis: 'measured' | 'predicted') => ({
    ...run,
    incumbent_id: 'c1',
    trend: [
      { ...point, candidate_id: 'c1', time_us: 40, basis: 'measured' as const },
      { ...point, candidate_id: 'c2', time_us: 42, basis }
    ]
  });
  it('is a ratio, of times of one kind', () => {
    expect(timeRatio(beside('measured'), 'c2')).toBe(1.05);
    expect(timeRatio(beside('predicted'), 'c2')).toBeNull();
    expect(timeRatio(beside('measured'), 'c1')).toBeNull();
  });
  it.each([
    [1.05, '5.0% slower than c1'],
    [0.5, '50% faster than c1'],
    [1.0001, 'as fast as c1']
  ])('%d in words', (ratio, text) => expect(compared(ratio, 'c1')).toBe(text));
  it.each([
    [1.05, '+5.0%'],
    [0.5, '−50%'],
    [1.0001, '=']
  ])('%d in brief', (ratio, text) => expect(change(ratio)).toBe(text));
});

it('the quickstart is a valid notebook on the given kernel', () => {
  const notebook = notebookOf(QUICKSTART, { name: 'python3', display_name: 'Python 3' });
  expect(notebook.metadata.kernelspec.name).toBe('python3');
  expect(new Set(notebook.cells.map(cell => cell.id)).size).toBe(notebook.cells.length);
  const code = notebook.cells.filter(cell => cell.cell_type === 'code').map(cell => cell.source);
  expect(code[0]).toBe('%load_ext cutegen_lab');
  expect(code[1]).toMatch(/^%%cutegen /);
});
