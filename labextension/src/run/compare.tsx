import { useMemo, useState } from 'preact/hooks';
import { changesSince } from '../code/changes';
import type { Language } from '../code/languages';
import { Pane } from '../code/pane';
import type { CandidateView, ConfigChange, MetricView } from '../schema';
import { ConfigChanges, difference } from './comparison';
import { basisWord } from './format';
import { attached, textOf, useMachineCode } from './machine';
import { Phrase } from './phrase';
import type { ITabProps } from './tabs';
import type { Look } from './verbs';
import { trans } from './words';

/** The numbers of two candidates by key, in the order of the first. */
function paired(
  before: CandidateView,
  after: CandidateView
): [string, MetricView | undefined, MetricView | undefined][] {
  const keyed = ({ metrics, counters }: CandidateView) =>
    new Map([...metrics, ...counters].map(metric => [metric.key, metric]));
  const [olds, news] = [keyed(before), keyed(after)];
  return [...new Set([...olds.keys(), ...news.keys()])].map(key => [key, olds.get(key), news.get(key)]);
}

/** The parameters whose values differ; an empty text where one of the two has none. */
function changedValues(before: CandidateView, after: CandidateView): ConfigChange[] {
  const values = ({ config }: CandidateView) => new Map(config.map(each => [each.name, String(each.value)]));
  const [olds, news] = [values(before), values(after)];
  return [...new Set([...news.keys(), ...olds.keys()])]
    .filter(name => olds.get(name) !== news.get(name))
    .map(name => ({ name, old: olds.get(name) ?? '', new: news.get(name) ?? '' }));
}

function Number({ metric }: { metric: MetricView | undefined }) {
  if (metric === undefined) {
    return <td class="cg-muted">–</td>;
  }
  return (
    <td>
      {metric.text}
      {metric.basis && <span class={`cg-basis cg-basis-${metric.basis}`}>{basisWord(metric.basis)}</span>}
    </td>
  );
}

function Numbers({ before, after }: { before: CandidateView; after: CandidateView }) {
  return (
    <div class="cg-scroll cg-comparison" role="group" aria-label={trans.__('Numbers')} tabIndex={0}>
      <table aria-label={trans.__('Numbers of %1 and %2', before.id, after.id)}>
        <thead>
          <tr>
            <td />
            <th scope="col">{before.id}</th>
            <th scope="col">{after.id}</th>
            <th scope="col">{trans.__('change')}</th>
          </tr>
        </thead>
        <tbody>
          {paired(before, after).map(([key, old, now]) => {
            const delta = old && now ? difference(now, old) : null;
            return (
              <tr key={key}>
                <th scope="row">{(now ?? old)?.label}</th>
                <Number metric={old} />
                <Number metric={now} />
                <td class={delta ? `cg-tone-${delta.tone}` : ''}>{delta?.text}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

const NONE: readonly number[] = [];

/** What changed from one text to another; lines that both have are folded. */
function Changes({
  label,
  before,
  after,
  language
}: {
  label: string;
  before: string;
  after: string;
  language: Language;
}) {
  const extra = useMemo(() => changesSince(before), [before]);
  if (before === after) {
    return <p class="cg-empty">{trans.__('%1: the same.', label)}</p>;
  }
  return (
    <div class="cg-code" data-panes="1">
      <Pane
        label={label}
        text={after}
        language={language}
        extra={extra}
        linked={NONE}
        reveal={0}
        onHover={() => undefined}
        onPick={() => undefined}
      />
    </div>
  );
}

function PtxChanges({ before, after, look }: { before: string; after: string; look: Look | null }) {
  const [old, now] = [useMachineCode(before, false, true, look), useMachineCode(after, false, true, look)];
  const error = old.error || now.error;
  if (error || old.code === null || now.code === null) {
    return (
      <p class={error ? 'cg-note cg-note-bad' : 'cg-note'} role="status">
        {error || trans.__('Reading the machine code…')}
      </p>
    );
  }
  return (
    <Changes
      label={trans.__('PTX from %1 to %2', before, after)}
      before={textOf(old.code.ptx)}
      after={textOf(now.code.ptx)}
      language="ptx"
    />
  );
}

/** The selected candidate and any other: numbers, parameters, source and PTX, and what differs. */
export function Compare({ view, candidate, parent, compared, onCompare, look }: ITabProps) {
  const [ptx, setPtx] = useState(false);
  const rest = view.candidates.filter(each => each.id !== candidate.id);
  const usual = [compared, parent, rest.find(each => each.id === view.best_id), rest[0]];
  const other = usual.find(each => each && each.id !== candidate.id);
  if (!other) {
    return (
      <p class="cg-empty">{trans.__('There is no other candidate to compare %1 with yet.', candidate.id)}</p>
    );
  }
  const changed = changedValues(other, candidate);
  const shownText = (of: CandidateView) => of.specialised?.source ?? of.source;
  return (
    <>
      <header class="cg-section-head cg-compare-head">
        <label>
          {trans.__('From')}{' '}
          <select class="cg-select" value={other.id} onChange={event => onCompare(event.currentTarget.value)}>
            {rest.map(each => (
              <option key={each.id} value={each.id}>
                {each.id} {each.title}
              </option>
            ))}
          </select>
        </label>
        <span>
          <Phrase text={trans.__('to %1 %2')} values={[<b>{candidate.id}</b>, candidate.title]} />
        </span>
      </header>
      <p class="cg-muted">
        {trans.__('Ctrl-click a candidate in the lineage compares the selected one with it.')}
      </p>
      <Numbers before={other} after={candidate} />
      <section aria-label={trans.__('Changed source')}>
        <header class="cg-section-head">
          <h4>{trans.__('Source')}</h4>
        </header>
        {changed.length > 0 && <ConfigChanges changes={changed} />}
        <Changes
          label={trans.__('Source from %1 to %2', other.id, candidate.id)}
          before={shownText(other)}
          after={shownText(candidate)}
          language="python"
        />
      </section>
      <section aria-label={trans.__('Changed PTX')}>
        <header class="cg-section-head">
          <h4>PTX</h4>
          <span class="cg-spacer" />
          <button
            type="button"
            class="cg-button cg-small"
            aria-pressed={ptx}
            disabled={look === null}
            title={look === null ? attached() : trans.__('What changes in the machine code')}
            onClick={() => setPtx(!ptx)}
          >
            {ptx ? trans.__('Hide PTX') : trans.__('Compare PTX')}
          </button>
        </header>
        {ptx && (
          <PtxChanges
            key={`${other.id} ${candidate.id}`}
            before={other.id}
            after={candidate.id}
            look={look}
          />
        )}
      </section>
    </>
  );
}
