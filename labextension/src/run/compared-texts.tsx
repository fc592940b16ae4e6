import { useMemo, useState } from 'preact/hooks';
import { changesSince } from '../code/changes';
import type { Language } from '../code/languages';
import { Pane } from '../code/pane';
import { ConfigChanges } from './comparison';
import { attached, textOf, useMachineCode } from './machine';
import { changedValues, type ISide } from './sides';
import { trans } from './words';

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

interface ISidesProps {
  before: ISide;
  after: ISide;
}

function PtxChanges({ before, after }: ISidesProps) {
  const old = useMachineCode(before.candidate.id, false, true, before.look);
  const now = useMachineCode(after.candidate.id, false, true, after.look);
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
      label={trans.__('PTX from %1 to %2', before.name, after.name)}
      before={textOf(old.code.ptx)}
      after={textOf(now.code.ptx)}
      language="ptx"
    />
  );
}

/** What differs in the parameters and the source of two candidates, and in their PTX where that is asked for. */
export function Texts({ before, after }: ISidesProps) {
  const [ptx, setPtx] = useState(false);
  const changed = changedValues(before.candidate, after.candidate);
  const shownText = ({ candidate }: ISide) => candidate.specialised?.source ?? candidate.source;
  const unasked = before.look === null || after.look === null;
  return (
    <>
      <section aria-label={trans.__('Changed source')}>
        <header class="cg-section-head">
          <h4>{trans.__('Source')}</h4>
        </header>
        {changed.length > 0 && <ConfigChanges changes={changed} />}
        <Changes
          label={trans.__('Source from %1 to %2', before.name, after.name)}
          before={shownText(before)}
          after={shownText(after)}
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
            disabled={unasked}
            title={unasked ? attached() : trans.__('What changes in the machine code')}
            onClick={() => setPtx(!ptx)}
          >
            {ptx ? trans.__('Hide PTX') : trans.__('Compare PTX')}
          </button>
        </header>
        {ptx && <PtxChanges key={`${before.name} ${after.name}`} before={before} after={after} />}
      </section>
    </>
  );
}
