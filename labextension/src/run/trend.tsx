import type { TrendPoint } from '../schema';
import { microseconds, significant } from './format';
import { trans } from './words';

const WIDTH = 280;
const HEIGHT = 112;
const BOX = { left: 46, right: 10, top: 10, bottom: 20 };

interface IMark {
  id: string;
  value: number | null;
  hollow: boolean;
  failed: boolean;
}

interface IPlotProps {
  title: string;
  unit: (value: number) => string;
  marks: readonly IMark[];
  reference: { value: number; label: string } | null;
  log: boolean;
  selectedId: string | null;
}

/** The y axis: bounds that hold every value with some air, and the ticks to name. */
export function axis(
  values: readonly number[],
  log: boolean
): { low: number; high: number; ticks: number[] } {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (log) {
    const first = Math.floor(Math.log10(low));
    const last = Math.max(Math.ceil(Math.log10(high)), first + 1);
    const every = Math.max(1, Math.ceil((last - first) / 3));
    const ticks = [];
    for (let power = first; power <= last; power += every) {
      ticks.push(10 ** power);
    }
    return { low: 10 ** first, high: 10 ** last, ticks };
  }
  const air = (high - low || high || 1) * 0.12;
  return { low: Math.max(0, low - air), high: high + air, ticks: low === high ? [low] : [low, high] };
}

function Plot({ title, unit, marks, reference, log, selectedId }: IPlotProps) {
  const usable = (value: number | null): value is number =>
    value !== null && Number.isFinite(value) && (!log || value > 0);
  const values = marks.map(mark => mark.value).filter(usable);
  if (values.length === 0) {
    return null;
  }
  const limit = reference !== null && usable(reference.value) ? reference : null;
  const { low, high, ticks } = axis(limit === null ? values : [...values, limit.value], log);
  const scale = log ? Math.log10 : (value: number) => value;
  const y = (value: number) =>
    HEIGHT -
    BOX.bottom -
    ((scale(value) - scale(low)) / (scale(high) - scale(low))) * (HEIGHT - BOX.top - BOX.bottom);
  const gap = (WIDTH - BOX.left - BOX.right) / marks.length;
  const x = (index: number) => BOX.left + gap * (index + 0.5);
  const path = marks
    .map((mark, i) => (usable(mark.value) ? `${x(i)},${y(mark.value)}` : ''))
    .filter(Boolean)
    .join(' ');
  const every = Math.ceil(marks.length / 8);
  const told = marks
    .map(mark => `${mark.id}: ${usable(mark.value) ? unit(mark.value) : trans.__('none')}`)
    .join('; ');
  const summary = `${title}. ${limit === null ? '' : `${limit.label} ${unit(limit.value)}. `}${told}`;
  return (
    <figure class="cg-plot">
      <figcaption>
        {title}
        {limit !== null && (
          <span class="cg-plot-reference">
            <span aria-hidden="true">┄ </span>
            {limit.label} {unit(limit.value)}
          </span>
        )}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={summary}>
        {ticks.map(tick => (
          <g key={tick} class="cg-tick">
            <line x1={BOX.left} x2={WIDTH - BOX.right} y1={y(tick)} y2={y(tick)} />
            <text x={BOX.left - 5} y={y(tick) + 3} text-anchor="end">
              {log ? `1e${Math.round(Math.log10(tick))}` : significant(tick)}
            </text>
          </g>
        ))}
        {limit !== null && (
          <line
            class="cg-reference"
            x1={BOX.left}
            x2={WIDTH - BOX.right}
            y1={y(limit.value)}
            y2={y(limit.value)}
          />
        )}
        <polyline class="cg-trace" points={path} />
        {marks.map((mark, i) => {
          const at = usable(mark.value) ? y(mark.value) : HEIGHT - BOX.bottom;
          const selected = mark.id === selectedId ? ' cg-selected' : '';
          const label = `${mark.id}: ${usable(mark.value) ? unit(mark.value) : trans.__('no value')}`;
          return (
            <g key={mark.id}>
              <title>{label}</title>
              {mark.failed ? (
                <path class={`cg-cross${selected}`} d={`M${x(i) - 3.5},${at - 3.5}l7,7m0,-7l-7,7`} />
              ) : usable(mark.value) ? (
                <circle
                  class={`cg-dot${mark.hollow ? ' cg-hollow' : ''}${selected}`}
                  cx={x(i)}
                  cy={at}
                  r={3.5}
                />
              ) : null}
              {i % every === 0 && (
                <text class="cg-tick-x" x={x(i)} y={HEIGHT - 6} text-anchor="middle">
                  {mark.id}
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

interface ITrendsProps {
  trend: readonly TrendPoint[];
  solUs: number;
  selectedId: string | null;
}

/** Error beside PyTorch's own, and time beside the speed of light, candidate by candidate. */
export function Trends({ trend, solUs, selectedId }: ITrendsProps) {
  if (!trend.some(point => point.error !== null || point.time_us !== null)) {
    return null;
  }
  const failed = (point: TrendPoint) => point.verdict !== '' && point.verdict !== 'passed';
  // A failed check is of the workload that failed, where PyTorch's own error may be of another size altogether.
  const known = trend.filter(point => point.torch_error !== null);
  const torch = (known.findLast(point => !failed(point)) ?? known.at(-1))?.torch_error ?? null;
  const predicted = trend.some(point => point.basis === 'predicted');
  const measured = trend.some(point => point.basis === 'measured');
  return (
    <section class="cg-trends" aria-label={trans.__('Trends')}>
      <Plot
        title={trans.__('Error vs fp64')}
        unit={significant}
        marks={trend.map(p => ({ id: p.candidate_id, value: p.error, hollow: false, failed: failed(p) }))}
        reference={torch === null ? null : { value: torch, label: 'PyTorch' }}
        log={true}
        selectedId={selectedId}
      />
      <Plot
        title={
          predicted && measured
            ? trans.__('Time (○ predicted, ● measured)')
            : predicted
              ? trans.__('Time, predicted')
              : trans.__('Time, measured')
        }
        unit={microseconds}
        marks={trend.map(p => ({
          id: p.candidate_id,
          value: p.time_us,
          hollow: p.basis === 'predicted',
          failed: failed(p)
        }))}
        reference={{ value: solUs, label: trans.__('bound') }}
        log={false}
        selectedId={selectedId}
      />
    </section>
  );
}
