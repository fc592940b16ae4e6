import { useEffect, useRef } from 'preact/hooks';
import type { CandidateView, RunView } from '../schema';
import { trans } from './words';

function Facts({ facts }: { facts: Record<string, string> }) {
  return (
    <dl class="cg-facts">
      {Object.entries(facts).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The last lines a live run said; follows the end unless the reader scrolled up. */
export function Log({ lines }: { lines: readonly string[] }) {
  const box = useRef<HTMLPreElement>(null);
  const follow = useRef(true);
  useEffect(() => {
    if (box.current && follow.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [lines]);
  if (lines.length === 0) {
    return null;
  }
  return (
    <details class="cg-details">
      <summary>
        {trans.__('Log')} <span class="cg-muted">{lines.at(-1)}</span>
      </summary>
      <pre
        ref={box}
        class="cg-log"
        tabIndex={0}
        onScroll={event => {
          const area = event.currentTarget;
          follow.current = area.scrollHeight - area.scrollTop - area.clientHeight < 24;
        }}
      >
        {lines.join('\n')}
      </pre>
    </details>
  );
}

/** The problem as it was given, and every workload it is timed and checked on. */
export function Problem({ view }: { view: RunView }) {
  const { problem } = view;
  const groups = [
    { name: trans.__('timed on'), list: problem.workloads },
    { name: trans.__('checked on'), list: problem.check_workloads }
  ].filter(group => group.list.length > 0);
  return (
    <details class="cg-details">
      <summary>
        {trans.__('Problem')}{' '}
        <span class="cg-muted">
          {problem.workloads[0]?.text ?? problem.kind} ·{' '}
          {trans._n('%1 check workload', '%1 check workloads', problem.check_workloads.length)}
        </span>
      </summary>
      <pre class="cg-problem" tabIndex={0}>
        {problem.source}
      </pre>
      <table class="cg-workloads">
        <tbody>
          {groups.flatMap(group =>
            group.list.map(workload => (
              <tr key={`${group.name} ${workload.name}`}>
                <td class="cg-muted">{group.name}</td>
                <th scope="row">{workload.name}</th>
                <td>
                  <code>{workload.text}</code>
                </td>
                <td class="cg-muted">{workload.why}</td>
              </tr>
            ))
          )}
        </tbody>
      </table>
    </details>
  );
}

/** What the selected candidate's evidence depends on. */
export function Provenance({
  candidate,
  versions
}: {
  candidate: CandidateView | null;
  versions: Record<string, string>;
}) {
  const facts = { ...versions, ...(candidate?.provenance ?? {}) };
  if (Object.keys(facts).length === 0) {
    return null;
  }
  return (
    <details class="cg-details">
      <summary>
        {trans.__('Provenance')}{' '}
        <span class="cg-muted">{trans.__('hashes, seeds, tolerances, versions')}</span>
      </summary>
      <Facts facts={facts} />
    </details>
  );
}
