import { describe, expect, it } from 'vitest';
import { branchDepths, elapsed, microseconds, seconds, significant } from '../src/run/format';
import { axis } from '../src/run/trend';
import { quickstartNotebook } from '../src/lab/notebook';
import { sample } from './samples';

describe('numbers', () => {
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

it('a branch is one deeper than the candidate it left, a chain is not', () => {
  expect([...branchDepths(sample('review').candidates)]).toEqual([
    ['c1', 0],
    ['c2', 0],
    ['c3', 0],
    ['c4', 0],
    ['c5', 1]
  ]);
});

it('the quickstart is a valid notebook on the given kernel', () => {
  const notebook = quickstartNotebook({ name: 'python3', display_name: 'Python 3' });
  expect(notebook.metadata.kernelspec.name).toBe('python3');
  expect(new Set(notebook.cells.map(cell => cell.id)).size).toBe(notebook.cells.length);
  const code = notebook.cells.filter(cell => cell.cell_type === 'code').map(cell => cell.source);
  expect(code[0]).toBe('%load_ext cutegen_lab');
  expect(code[1]).toMatch(/^%%cutegen /);
});
