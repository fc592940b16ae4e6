import type { MetricView } from '../schema';
import { candidates, significant, standing, statusLine, type Tone } from './format';
import { deviceOf, type ISide } from './sides';
import { trans } from './words';

/** Words in a row of numbers: there is no change of them. */
const said = (key: string, label: string, text: string): MetricView => ({
  key,
  label,
  value: null,
  text,
  basis: '',
  better: 'less'
});

/** How many times faster a candidate is than each baseline that was timed beside it. */
function speedups({ candidate }: ISide, time: MetricView | undefined): MetricView[] {
  const us = time?.value;
  return us
    ? Object.entries(candidate.baselines).map(([name, baselineUs]) => ({
        key: `speedup ${name}`,
        label: trans.__('Speedup over %1', name),
        value: baselineUs / us,
        text: `${significant(baselineUs / us)}×`,
        basis: time.basis,
        better: 'more'
      }))
    : [];
}

/** How many times faster it is than the first of its run that passed, which is another one in each run. */
function speedupOfRun({ view, candidate }: ISide): MetricView[] {
  const mine = view.trend.find(each => each.candidate_id === candidate.id);
  const first = view.trend.find(
    each => each.verdict === 'passed' && each.time_us !== null && each.basis === mine?.basis
  );
  if (!mine?.time_us || !first?.time_us || first === mine) {
    return [];
  }
  const text = `${significant(first.time_us / mine.time_us)}× ${first.candidate_id}`;
  return [said('speedup_of_run', trans.__('Speedup over the first kernel of its run'), text)];
}

/** The numbers of a candidate and of its run that are compared with another run's. */
export function numbersOf(side: ISide): MetricView[] {
  const { view, candidate } = side;
  const time = candidate.metrics.find(each => each.key === 'time');
  const count = view.candidates.length;
  const how = candidate.evidence.find(row => row.key === 'time')?.detail;
  return [
    ...(time ? [time] : []),
    ...speedups(side, time),
    ...speedupOfRun(side),
    ...candidate.metrics.filter(each => each !== time),
    ...candidate.counters,
    {
      key: 'steps',
      label: trans.__('Steps used'),
      value: count,
      text: candidates(count, view.settings.max_steps),
      basis: '',
      better: 'less'
    },
    ...(how ? [said('timed_by', trans.__('Timed by'), how)] : [])
  ];
}

interface IFact {
  label: string;
  of: (side: ISide) => { text: string; detail?: string; tone?: Tone };
}

const facts = (): IFact[] => [
  {
    label: trans.__('Problem'),
    of: ({ view: { problem } }) => ({
      text: problem.name,
      detail: problem.workloads.map(each => each.text).join('; ')
    })
  },
  {
    label: trans.__('Provider'),
    of: ({ view: { settings } }) => ({ text: settings.provider, detail: settings.model })
  },
  {
    label: trans.__('Device'),
    of: side => {
      const { arch, gpu } = side.view.settings;
      return { text: deviceOf(side), detail: trans.__('%1 for %2', arch, gpu) };
    }
  },
  {
    label: trans.__('Run'),
    of: ({ view }) => {
      const { word, detail, tone } = statusLine(view);
      return { text: [word, detail].filter(Boolean).join(' · '), tone };
    }
  },
  { label: trans.__('Candidate'), of: ({ candidate }) => ({ text: candidate.title }) },
  {
    label: trans.__('Verdict'),
    of: ({ candidate }) => {
      const { mark, word, tone } = standing(candidate);
      return { text: `${mark} ${word}`.trim(), tone };
    }
  }
];

/** What is said of two runs in words, as rows of their numbers' table. */
export function FactRows({ sides }: { sides: readonly ISide[] }) {
  return (
    <>
      {facts().map(({ label, of }) => (
        <tr key={label}>
          <th scope="row">{label}</th>
          {sides.map((side, at) => {
            const { text, detail, tone } = of(side);
            return (
              <td key={at}>
                <span class={tone && `cg-tone-${tone}`}>{text}</span>
                {detail && <span class="cg-detail">{detail}</span>}
              </td>
            );
          })}
          <td />
        </tr>
      ))}
    </>
  );
}
