import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { describe, expect, it, vi } from 'vitest';
import { cellText, decades, Profile, slope } from '../src/run/profile';
import type { Look } from '../src/run/verbs';
import type { ProfileView } from '../src/schema';
import { host } from './host';

/** The kernel's answer about a run recorded on the emulator (tests/packaging/make_samples.py). */
const ANSWER = JSON.parse(
  readFileSync(resolve(import.meta.dirname, 'answers/profile.json'), 'utf8')
) as ProfileView;

async function show(look: Look | null, known = '1'): Promise<void> {
  await act(async () => {
    render(<Profile candidateId="c1" known={known} look={look} />, host);
    await new Promise(done => setTimeout(done));
  });
}

describe('the profile', () => {
  it('is asked for when it is first shown, and again once more is known', async () => {
    const look = vi.fn<Look>(() => Promise.resolve(ANSWER));
    await show(look);
    expect(look).toHaveBeenCalledExactlyOnceWith({ query: 'profile', candidate_id: 'c1' });
    await show(look, '1');
    expect(look).toHaveBeenCalledTimes(1);
    await show(look, '2');
    expect(look).toHaveBeenCalledTimes(2);
  });

  it('marks every candidate twice under the ceilings, and names the selected one', async () => {
    await show(() => Promise.resolve(ANSWER));
    const roofline = host.querySelector('figure');
    expect(roofline?.querySelectorAll('circle')).toHaveLength(ANSWER.points.length);
    expect(roofline?.querySelectorAll('.cg-hollow')).toHaveLength(ANSWER.points.length / 2);
    expect(roofline?.querySelectorAll('.cg-selected')).toHaveLength(2);
    const trail = roofline?.querySelector('polyline')?.getAttribute('points')?.split(' ');
    expect(trail).toHaveLength(ANSWER.points.length / 2);
    expect(roofline?.querySelectorAll('.cg-ceiling line')).toHaveLength(ANSWER.ceilings.length);
    for (const mark of roofline?.querySelectorAll('circle') ?? []) {
      expect(Number(mark.getAttribute('cy'))).toBeGreaterThan(0);
      expect(Number(mark.getAttribute('cy'))).toBeLessThan(210);
    }
  });

  it('has bytes, occupancy with its limiter, and a cell for each check', async () => {
    await show(() => Promise.resolve(ANSWER));
    expect(host.querySelectorAll('.cg-memory tr')).toHaveLength(ANSWER.memory.length);
    const limited = ANSWER.limits.filter(limit => limit.limits).map(limit => limit.resource);
    expect(limited.length).toBeGreaterThan(0);
    expect(host.querySelector('.cg-occupancy')?.textContent).toContain(
      `gemm_kernel: limited by ${limited.join(' and ')}`
    );
    const cells = [...host.querySelectorAll('.cg-matrix td')].filter(cell => cell.textContent !== '');
    expect(cells).toHaveLength(ANSWER.checks.length);
  });

  it('says why there is none', async () => {
    await show(() => Promise.reject(new Error('run r-1 has no candidate c1')));
    expect(host.querySelector('[role=status]')?.textContent).toBe('run r-1 has no candidate c1');
  });

  it('of a candidate of which nothing is known is a sentence', async () => {
    const none = { ...ANSWER, points: [], ceilings: [], memory: [], limits: [], what_if: [], checks: [] };
    await show(() => Promise.resolve(none));
    expect(host.textContent).toContain('Nothing is known of c1 yet.');
  });

  it('waits for a kernel in a saved run', async () => {
    await show(null);
    expect(host.textContent).toBe('Plots are shown while a kernel is attached.');
  });
});

describe('what plots are made of', () => {
  it('a failed check is a cross, not a colour alone', () => {
    const cell = { workload: 'main', draw: 'normal', checks: 2, failed: 0, error_over_budget: 0.333 };
    expect(cellText(cell)).toBe('33%');
    expect(cellText({ ...cell, failed: 1, error_over_budget: 250 })).toBe('✕ 250×');
    expect(cellText({ ...cell, failed: 1, error_over_budget: null })).toBe('✕');
    expect(cellText({ ...cell, error_over_budget: null })).toBe('✓');
  });

  it('ticks are whole powers of ten', () => {
    expect(decades(2, 250)).toEqual([1, 2]);
    expect(decades(20, 50)).toEqual([]);
  });

  it("a bandwidth's line ends at the highest rate, and is left out where none of it shows", () => {
    expect(slope(2, 1, 100, 4, 20)).toEqual({ from: 2, to: 10 });
    expect(slope(1000, 1, 100, 4, 20)).toBeNull();
  });
});
