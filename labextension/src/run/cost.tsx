import type { CostView } from '../schema';

const COUNT = new Intl.NumberFormat('en');

/** $0.0042 · $0.13 · $12.40 */
export function dollars(usd: number): string {
  return `$${usd.toFixed(usd > 0 && usd < 0.01 ? 4 : 2)}`;
}

/** "12,400 of at most 20,000 tokens · $0.13 of at most $2.00"; says so where no price is known. */
export function costText({ prompt, completion, usd, max_tokens, max_usd }: CostView): string {
  const most = (cap: string | null) => (cap === null ? '' : ` of at most ${cap}`);
  const tokens = `${COUNT.format(prompt + completion)}${most(max_tokens === null ? null : COUNT.format(max_tokens))} tokens`;
  const money =
    usd === null ? 'price not known' : `${dollars(usd)}${most(max_usd === null ? null : dollars(max_usd))}`;
  return `${tokens} · ${money}`;
}

/** What the model's answers cost so far, and how long the one is that it writes. */
export function Cost({ cost }: { cost: CostView | null }) {
  if (cost === null) {
    return null;
  }
  const parts = `${COUNT.format(cost.prompt)} tokens sent, ${COUNT.format(cost.completion)} received.`;
  const price =
    cost.usd === null ? ' Give --price, dollars for a million tokens, to see what they cost.' : '';
  return (
    <span class="cg-muted cg-cost" title={parts + price}>
      {costText(cost)}
      {cost.streamed > 0 && <b> · now writing, about {COUNT.format(cost.streamed)} tokens</b>}
    </span>
  );
}
