import { act } from 'preact/test-utils';
import { describe, expect, it } from 'vitest';
import { costText } from '../src/run/cost';
import { mount } from '../src/run/mount';
import type { CostView } from '../src/schema';
import { host } from './host';
import { sample } from './samples';

const COST: CostView = {
  prompt: 14100,
  completion: 6000,
  usd: null,
  max_tokens: null,
  max_usd: null,
  streamed: 0
};

describe('the cost of a run', () => {
  it('is tokens and dollars with their caps, and says where no price is known', () => {
    expect(costText(COST)).toBe('20,100 tokens · price not known');
    expect(costText({ ...COST, usd: 0.0042 })).toBe('20,100 tokens · $0.0042');
    expect(costText({ ...COST, usd: 0.0776, max_usd: 2, max_tokens: 60000 })).toBe(
      '20,100 of at most 60,000 tokens · $0.08 of at most $2.00'
    );
  });

  it('stands in the header, with the answer that is being written', async () => {
    await act(() => mount(host, sample('model'), null));
    expect(host.querySelector('.cg-header .cg-cost')?.textContent).toBe(
      '20,100 of at most 60,000 tokens · $0.08 of at most $0.50 · now writing, about 1,342 tokens'
    );
  });

  it('is not there where no model was asked', async () => {
    await act(() => mount(host, sample('review'), null));
    expect(host.querySelector('.cg-cost')).toBeNull();
  });
});
