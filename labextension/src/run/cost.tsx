import type { CostView } from '../schema';
import { trans } from './words';

const COUNT = new Intl.NumberFormat('en');

/** $0.0042 · $0.13 · $12.40 */
export function dollars(usd: number): string {
  return `$${usd.toFixed(usd > 0 && usd < 0.01 ? 4 : 2)}`;
}

/** "12,400 of at most 20,000 tokens · $0.13 of at most $2.00"; says so where no price is known. */
export function costText({ prompt, completion, usd, max_tokens, max_usd }: CostView): string {
  const used = COUNT.format(prompt + completion);
  const tokens =
    max_tokens === null
      ? trans.__('%1 tokens', used)
      : trans.__('%1 of at most %2 tokens', used, COUNT.format(max_tokens));
  if (usd === null) {
    return `${tokens} · ${trans.__('price not known')}`;
  }
  const spent = dollars(usd);
  return `${tokens} · ${max_usd === null ? spent : trans.__('%1 of at most %2', spent, dollars(max_usd))}`;
}

/** What the model's answers cost so far, and how long the one is that it writes. */
export function Cost({ cost }: { cost: CostView | null }) {
  if (cost === null) {
    return null;
  }
  const { prompt, completion, streamed } = cost;
  const said = [
    trans.__('%1 tokens sent, %2 received.', COUNT.format(prompt), COUNT.format(completion)),
    cost.usd === null && trans.__('Give --price, dollars for a million tokens, to see what they cost.')
  ];
  return (
    <span class="cg-muted cg-cost" title={said.filter(Boolean).join(' ')}>
      {costText(cost)}
      {streamed > 0 && <b> · {trans.__('now writing, about %1 tokens', COUNT.format(streamed))}</b>}
    </span>
  );
}
