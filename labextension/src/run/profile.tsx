import { useEffect, useState } from 'preact/hooks';
import type { CheckCell, Limit, MemoryBar, ProfileView, RooflinePoint, WhatIf } from '../schema';
import { basisWord, microseconds, significant } from './format';
import { Phrase } from './phrase';
import type { ITabProps } from './tabs';
import type { Look } from './verbs';
import { trans } from './words';

const WIDTH = 340;
const HEIGHT = 210;
const BOX = { left: 54, right: 12, top: 14, bottom: 34 };
const MIB = 1 << 20;

/** Whole powers of ten between two values. */
export function decades(low: number, high: number): number[] {
  const found = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++) {
    found.push(power);
  }
  return found;
}

/** The part of a bandwidth's line that is below the highest rate and inside the plot: two points. */
export function slope(bytesPerS: number, low: number, high: number, floor: number, top: number) {
  const from = Math.max(low, floor / bytesPerS);
  const to = Math.min(high, top / bytesPerS);
  return to > from ? { from, to } : null;
}

function pointTitle(p: RooflinePoint): string {
  const [intensity, rate] = [significant(p.intensity), significant(p.operations_per_s / 1e12)];
  const figures = [intensity, rate, `${microseconds(p.time_us)} ${basisWord(p.basis)}`] as const;
  return p.bytes_counted === 'moved'
    ? trans.__('%1, by moved bytes: %2 operations a byte, %3 T/s, %4', p.candidate, ...figures)
    : trans.__('%1, by compulsory bytes: %2 operations a byte, %3 T/s, %4', p.candidate, ...figures);
}

function Roofline({ profile, id }: { profile: ProfileView; id: string }) {
  const { points, ceilings } = profile;
  const rates = ceilings.flatMap(c => (c.operations_per_s === null ? [] : [c.operations_per_s]));
  const top = Math.max(...rates);
  const at = points.map(p => p.intensity);
  const ridges = ceilings.flatMap(c => (c.bytes_per_s === null ? [] : [top / c.bytes_per_s]));
  const low = Math.min(...at, ...ridges) / 5;
  const high = Math.max(...at, ...ridges) * 4;
  const floor = Math.min(...points.map(p => p.operations_per_s), ...rates) / 5;
  const ceiling = top * 2;
  const across = (WIDTH - BOX.left - BOX.right) / Math.log(high / low);
  const up = (HEIGHT - BOX.top - BOX.bottom) / Math.log(ceiling / floor);
  const x = (value: number) => BOX.left + across * Math.log(value / low);
  const y = (value: number) => HEIGHT - BOX.bottom - up * Math.log(value / floor);
  const told = points
    .filter(p => p.bytes_counted === 'moved')
    .map(p => `${p.candidate} ${significant(p.operations_per_s / 1e12)} T/s`);
  return (
    <figure class="cg-plot">
      <figcaption>{trans.__('Roofline on %1', profile.gpu)}</figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={trans.__('Roofline. %1', told.join('; '))}
      >
        {decades(low, high).map(power => (
          <g key={`x${power}`} class="cg-tick">
            <line x1={x(10 ** power)} x2={x(10 ** power)} y1={BOX.top} y2={HEIGHT - BOX.bottom} />
            <text x={x(10 ** power)} y={HEIGHT - BOX.bottom + 12} text-anchor="middle">
              {significant(10 ** power)}
            </text>
          </g>
        ))}
        {decades(floor, ceiling).map(power => (
          <g key={`y${power}`} class="cg-tick">
            <line x1={BOX.left} x2={WIDTH - BOX.right} y1={y(10 ** power)} y2={y(10 ** power)} />
            <text x={BOX.left - 4} y={y(10 ** power) + 3} text-anchor="end">
              {`${significant(10 ** (power - 12))} T/s`}
            </text>
          </g>
        ))}
        <text x={(WIDTH + BOX.left) / 2} y={HEIGHT - 6} text-anchor="middle">
          {trans.__('operations a byte')}
        </text>
        {ceilings.map(({ name, operations_per_s: rate, bytes_per_s: width }) => {
          const line = width === null ? { from: low, to: high } : slope(width, low, high, floor, top);
          if (line === null) {
            return null;
          }
          const value = (bytes: number) => rate ?? (width ?? 0) * bytes;
          return (
            <g key={name} class="cg-ceiling">
              <title>{name}</title>
              <line x1={x(line.from)} y1={y(value(line.from))} x2={x(line.to)} y2={y(value(line.to))} />
              {width === null && (
                <text x={x(high)} y={y(value(high)) + (rate === top ? -3 : 11)} text-anchor="end">
                  {name}
                </text>
              )}
            </g>
          );
        })}
        <polyline
          class="cg-trace"
          points={points
            .filter(p => p.bytes_counted === 'moved')
            .map(p => `${x(p.intensity)},${y(p.operations_per_s)}`)
            .join(' ')}
        />
        {points.map(p => (
          <g key={`${p.candidate} ${p.bytes_counted}`} class={p.candidate === id ? 'cg-selected' : ''}>
            <title>{pointTitle(p)}</title>
            <circle
              class={`cg-dot${p.bytes_counted === 'compulsory' ? ' cg-hollow' : ''}`}
              cx={x(p.intensity)}
              cy={y(p.operations_per_s)}
              r={p.bytes_counted === 'compulsory' ? 5 : 3.5}
            />
            {p.candidate === id && p.bytes_counted === 'moved' && (
              <text x={x(p.intensity)} y={y(p.operations_per_s) + 15} text-anchor="middle">
                {p.candidate}
              </text>
            )}
          </g>
        ))}
      </svg>
      <p class="cg-muted">
        {trans.__(
          '● by bytes moved from L2, ○ by compulsory bytes; inclined lines: %1',
          ceilings
            .filter(c => c.bytes_per_s !== null)
            .map(c => c.name)
            .join(', ')
        )}
      </p>
    </figure>
  );
}

function Memory({ bars }: { bars: readonly MemoryBar[] }) {
  const most = Math.max(...bars.map(bar => Math.max(bar.nbytes, bar.compulsory_bytes ?? 0)));
  return (
    <figure class="cg-plot cg-memory">
      <figcaption>{trans.__('Memory, MiB')}</figcaption>
      <table>
        <tbody>
          {bars.map(({ source, level, part, nbytes, compulsory_bytes: least }) => (
            <tr key={`${source} ${level} ${part}`}>
              <th scope="row">{`${level}, ${part}${source === 'ncu' ? ' (ncu)' : ''}`}</th>
              <td class="cg-bar-cell">
                <span class="cg-bar" style={{ width: `${(100 * nbytes) / most}%` }} aria-hidden="true" />
              </td>
              <td>
                {significant(nbytes / MIB)}
                {least !== null && (
                  <span class="cg-muted">{` ${trans.__('= %1 × compulsory', significant(nbytes / least))}`}</span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

/** Resident warps over one resource, with a mark where the kernel is. */
function Sweep({ points }: { points: readonly WhatIf[] }) {
  const now = points.find(point => point.current);
  if (now === undefined) {
    return null;
  }
  const most = Math.max(...points.map(point => point.value));
  const warps = Math.max(...points.map(point => point.resident_warps), 1);
  const height = 130;
  const x = (value: number) => BOX.left + ((WIDTH - BOX.left - BOX.right) * value) / most;
  const y = (value: number) => height - BOX.bottom - ((height - BOX.top - BOX.bottom) * value) / warps;
  const shared = now.resource === 'shared memory a block';
  const amount = (value: number) =>
    shared ? `${significant(value / 1024)} KiB` : trans._n('%1 register', '%1 registers', value);
  const path = points
    .map((p, i) =>
      i === 0 ? `M${x(p.value)},${y(p.resident_warps)}` : `H${x(p.value)}V${y(p.resident_warps)}`
    )
    .join('');
  const told = trans._n('%1 warp at %2', '%1 warps at %2', now.resident_warps, amount(now.value));
  const title = shared
    ? trans.__('Resident warps by shared memory a block')
    : trans.__('Resident warps by registers a thread');
  return (
    <figure class="cg-plot">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={`${title}: ${told}`}>
        {[0, warps].map(tick => (
          <g key={tick} class="cg-tick">
            <line x1={BOX.left} x2={WIDTH - BOX.right} y1={y(tick)} y2={y(tick)} />
            <text x={BOX.left - 4} y={y(tick) + 3} text-anchor="end">
              {tick}
            </text>
          </g>
        ))}
        {[0, most].map(tick => (
          <text
            key={tick}
            x={x(tick)}
            y={height - BOX.bottom + 12}
            text-anchor={tick === 0 ? 'start' : 'end'}
          >
            {amount(tick)}
          </text>
        ))}
        <path class="cg-trace" d={path} />
        <circle class="cg-dot" cx={x(now.value)} cy={y(now.resident_warps)} r={4} />
        <text
          x={x(now.value)}
          y={y(now.resident_warps) + 16}
          text-anchor={now.value > most / 2 ? 'end' : 'start'}
        >
          {told}
        </text>
      </svg>
    </figure>
  );
}

function Occupancy({ whatIf, limits }: { whatIf: readonly WhatIf[]; limits: readonly Limit[] }) {
  const kernels = [...new Set(limits.map(limit => limit.kernel))];
  return (
    <>
      {kernels.map(kernel => {
        const mine = limits.filter(limit => limit.kernel === kernel);
        const by = mine
          .filter(limit => limit.limits)
          .map(limit => limit.resource)
          .reduce((all, each) => (all ? trans.__('%1 and %2', all, each) : each), '');
        const fit = mine.map(({ resource, blocks }) =>
          resource === 'blocks a multiprocessor'
            ? trans.__('%1 by the GPU', blocks)
            : trans.__('%1 by %2', blocks, resource)
        );
        const swept = (resource: WhatIf['resource']) =>
          whatIf.filter(point => point.kernel === kernel && point.resource === resource);
        return (
          <section key={kernel} class="cg-occupancy" aria-label={trans.__('Occupancy of %1', kernel)}>
            <p>
              <Phrase text={trans.__('%1: limited by %2.')} values={[<b>{kernel}</b>, by]} />{' '}
              <span class="cg-muted">{trans.__('Blocks that fit a multiprocessor: %1', fit.join(', '))}</span>
            </p>
            <div class="cg-plots">
              <Sweep points={swept('registers a thread')} />
              <Sweep points={swept('shared memory a block')} />
            </div>
          </section>
        );
      })}
    </>
  );
}

/** What one cell of the matrix says: a cross and a word where a check failed. */
export function cellText({ failed, error_over_budget: share }: CheckCell): string {
  const number = share === null ? '' : share < 10 ? `${Math.round(100 * share)}%` : `${significant(share)}×`;
  return failed > 0 ? `✕ ${number}`.trim() : number || '✓';
}

function Checks({ cells }: { cells: readonly CheckCell[] }) {
  const workloads = [...new Set(cells.map(cell => cell.workload))];
  const draws = [...new Set(cells.map(cell => cell.draw))];
  const by = new Map(cells.map(cell => [`${cell.workload}\n${cell.draw}`, cell]));
  const failed = cells.reduce((sum, cell) => sum + cell.failed, 0);
  const checks = cells.reduce((sum, cell) => sum + cell.checks, 0);
  return (
    <section class="cg-matrix" aria-label={trans.__('Checks')}>
      <p>
        <Phrase
          text={trans.__('%1: largest error over what is allowed, by inputs and workload; %2 of %3 failed')}
          values={[<b>{trans.__('Checks')}</b>, failed, checks]}
        />
      </p>
      <div class="cg-scroll" role="group" aria-label={trans.__('Checks')} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <td />
              {workloads.map(workload => (
                <th key={workload} scope="col">
                  {workload}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {draws.map(draw => (
              <tr key={draw}>
                <th scope="row">{draw}</th>
                {workloads.map(workload => {
                  const cell = by.get(`${workload}\n${draw}`);
                  const tone = cell === undefined ? '' : cell.failed > 0 ? 'cg-tone-bad' : 'cg-tone-good';
                  return (
                    <td key={workload} class={tone}>
                      {cell === undefined ? '' : cellText(cell)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Plots({ profile }: { profile: ProfileView }) {
  const { points, memory, limits, checks } = profile;
  if (points.length + memory.length + limits.length + checks.length === 0) {
    return <p class="cg-empty">{trans.__('Nothing is known of %1 yet.', profile.candidate_id)}</p>;
  }
  return (
    <>
      <div class="cg-plots">
        {points.length > 0 && <Roofline profile={profile} id={profile.candidate_id} />}
        {memory.length > 0 && <Memory bars={memory} />}
      </div>
      <Occupancy whatIf={profile.what_if} limits={limits} />
      {checks.length > 0 && <Checks cells={checks} />}
    </>
  );
}

interface IProfileProps {
  candidateId: string;
  /** Changes when more is known of the candidate. */
  known: string;
  /** null where nobody can be asked. */
  look: Look | null;
}

/** Plots of a candidate's profile, asked for when they are first shown. */
export function Profile({ candidateId, known, look }: IProfileProps) {
  const [found, setFound] = useState<{ key: string; profile: ProfileView | null; error: string } | null>(
    null
  );
  const key = `${candidateId} ${known}`;
  useEffect(() => {
    if (look === null) {
      return;
    }
    let gone = false;
    const settle = (profile: ProfileView | null, error: string) => gone || setFound({ key, profile, error });
    look({ query: 'profile', candidate_id: candidateId }).then(
      data => settle(data as ProfileView, ''),
      (reason: unknown) => settle(null, reason instanceof Error ? reason.message : String(reason))
    );
    return () => {
      gone = true;
    };
  }, [candidateId, key, look]);
  if (look === null) {
    return <p class="cg-empty">{trans.__('Plots are shown while a kernel is attached.')}</p>;
  }
  const shown = found?.profile?.candidate_id === candidateId ? found.profile : null;
  return (
    <section class="cg-profile" aria-label={trans.__('Profile')}>
      {shown !== null ? (
        <Plots profile={shown} />
      ) : (
        <p class="cg-empty" role="status">
          {found?.key === key && found.error ? found.error : trans.__('Loading…')}
        </p>
      )}
    </section>
  );
}

/** The plots of the selected candidate as a tab. */
export function ProfileTab({ view, candidate, look }: ITabProps) {
  const done = candidate.steps.filter(step => step.status === 'done').length;
  return (
    <Profile
      key={candidate.id}
      candidateId={candidate.id}
      known={`${done} ${view.trend.length}`}
      look={look}
    />
  );
}
