import { useRef, useState } from 'preact/hooks';
import { Comparison } from './comparison';
import { Diagnostics, Evidence, Summary } from './evidence';
import { byTemplates, timeRatio, words } from './format';
import { usePointed } from './pointed';
import { Source } from './source';
import type { ITabProps } from './tabs';
import { Terms } from './terms';

const NOT_ASKED = { line: 0, count: 0, of: '' };

/** What an answer is based on: a candidate's verdict, diagnostics, numbers, evidence and source. */
export function Review({ view, candidate, parent, ask, look }: ITabProps) {
  const [tunable, setTunable] = useState(false);
  const [asked, setAsked] = useState(NOT_ASKED);
  const { specialised } = candidate;
  const shown = specialised && !tunable ? { ...candidate, ...specialised } : candidate;
  const before = parent && ((!tunable && specialised ? parent.specialised?.source : null) ?? parent.source);
  const root = useRef<HTMLDivElement>(null);
  const { pointed, point } = usePointed(root, candidate.id);
  const showLine = (line: number) => setAsked(now => ({ line, count: now.count + 1, of: candidate.id }));
  return (
    <div class="cg-review" ref={root}>
      <Summary candidate={candidate} ratio={timeRatio(view, candidate.id, candidate.parent_id)} />
      {candidate.verdict_reason && candidate.verdict !== 'passed' && (
        <p class="cg-note cg-note-bad">
          <b>{words(candidate.verdict)}</b>: {candidate.verdict_reason}
        </p>
      )}
      <Diagnostics items={shown.diagnostics} onLine={showLine} pointed={pointed} />
      <Comparison view={view} candidate={candidate} />
      <Terms candidate={candidate} />
      <Evidence items={shown.evidence} onLine={showLine} pointed={pointed} />
      <Source
        key={candidate.id}
        candidate={shown}
        before={before}
        tunable={specialised === null ? null : tunable}
        onTunable={setTunable}
        templates={byTemplates(view)}
        verbs={view.verbs}
        ask={ask}
        look={look}
        asked={asked.of === candidate.id ? asked : NOT_ASKED}
        pointed={pointed}
        onPoint={point}
      />
    </div>
  );
}
