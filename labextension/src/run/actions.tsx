import { useRef, useState } from 'preact/hooks';
import type { CandidateView, RunView } from '../schema';
import { Editor } from './editor';
import { byTemplates, standsTo, timeRatio } from './format';
import { Phrase } from './phrase';
import { ScopeChoice, scopeText, THIS_STEP } from './scope';
import { Prompt, useSending } from './sending';
import { buttonOf, type Ask, type IAnswer, type Look, type Verb } from './verbs';
import { trans } from './words';

type Panel = 'reject' | 'edit' | 'approve_unproven' | 'approve';

interface IActionsProps {
  view: RunView;
  selected: CandidateView | null;
  ask: Ask;
  look: Look | null;
  onSelect: (id: string) => void;
}

function Reject({
  id,
  templates,
  busy,
  onReject,
  onCancel
}: {
  id: string;
  templates: boolean;
  busy: boolean;
  onReject: (reason: string) => void;
  onCancel: () => void;
}) {
  const [reason, setReason] = useState('');
  return (
    <Prompt label={trans.__('Reject %1', id)} onCancel={onCancel}>
      <label>
        {templates
          ? trans.__('Why is %1 not good enough? Templates do not read it; it stays with the run.', id)
          : trans.__('Why is %1 not good enough? The next refinement starts from this.', id)}
        <textarea
          class="cg-input"
          rows={2}
          value={reason}
          ref={element => element?.focus()}
          onInput={event => setReason(event.currentTarget.value)}
        />
      </label>
      <div class="cg-row">
        <button
          type="button"
          class="cg-button cg-danger"
          disabled={busy || reason.trim() === ''}
          onClick={() => onReject(reason.trim())}
        >
          {trans.__('Reject %1', id)}
        </button>
        <button type="button" class="cg-button" onClick={onCancel}>
          {trans.__('Cancel')}
        </button>
      </div>
    </Prompt>
  );
}

function Unproven({
  id,
  busy,
  onApprove,
  onCancel
}: {
  id: string;
  busy: boolean;
  onApprove: () => void;
  onCancel: () => void;
}) {
  return (
    <Prompt label={trans.__('Approve %1 without proof', id)} onCancel={onCancel}>
      <p>
        <b>{trans.__('%1 has no complete proof.', id)}</b>{' '}
        {trans.__(
          'It was not compiled, checked and found right, so accepting it is recorded as “approved without proof”.'
        )}
      </p>
      <div class="cg-row">
        <button type="button" class="cg-button cg-danger" disabled={busy} onClick={onApprove}>
          {trans.__('Approve %1 without proof', id)}
        </button>
        <button type="button" class="cg-button" ref={element => element?.focus()} onClick={onCancel}>
          {trans.__('Cancel')}
        </button>
      </div>
    </Prompt>
  );
}

function Slower({
  id,
  how,
  busy,
  onApprove,
  onCancel
}: {
  id: string;
  how: string;
  busy: boolean;
  onApprove: () => void;
  onCancel: () => void;
}) {
  return (
    <Prompt label={trans.__('Approve %1, which is slower', id)} onCancel={onCancel}>
      <p>
        <Phrase text={trans.__('%1. It would replace the current kernel.')} values={[<b>{how}</b>]} />
      </p>
      <div class="cg-row">
        <button type="button" class="cg-button cg-danger" disabled={busy} onClick={onApprove}>
          {trans.__('Approve %1 nevertheless', id)}
        </button>
        <button type="button" class="cg-button" ref={element => element?.focus()} onClick={onCancel}>
          {trans.__('Cancel')}
        </button>
      </div>
    </Prompt>
  );
}

/** Of ten predicted gains, how many have to come true when measured for one to be shown as good. */
const SURE = 9;

/** Every verb the run allows now, and none it does not. */
export function Actions({ view, selected, ask, look, onSelect }: IActionsProps) {
  const [panel, setPanel] = useState<Panel | null>(null);
  const [scope, setScope] = useState(THIS_STEP);
  const drafts = useRef(new Map<string, string>());
  const { busy, message, failed, send } = useSending(ask);
  const can = (verb: Verb) => view.verbs.includes(verb);
  const current = view.candidates.find(candidate => candidate.id === view.current_id) ?? null;
  const id = current?.id ?? '';
  const elsewhere = current !== null && selected !== null && selected.id !== current.id;
  // Another candidate that passed may be approved instead of the one under review.
  const judged = elsewhere ? selected.id : id;
  const approvable = can('approve') && view.approvable.includes(judged);
  const ratio = current === null ? null : timeRatio(view, judged);
  const how = ratio === null ? '' : standsTo(judged, ratio, view.incumbent_id ?? '');
  const slower = ratio !== null && ratio > 1.0005;
  const odds = view.candidates.find(candidate => candidate.id === judged)?.predicted_odds ?? null;
  const open =
    panel !== null && can(panel) && current !== null && (panel === 'approve' ? approvable : !elsewhere)
      ? panel
      : null;

  const say = (verb: Verb, more: Partial<IAnswer> = {}) => {
    void send({ verb, candidate_id: view.current_id, ...more }).then(taken => {
      if (taken) {
        if (verb === 'edit') {
          drafts.current.delete(id);
        }
        setPanel(null);
        setScope(THIS_STEP);
      }
    });
  };
  const approve = () =>
    say('approve', {
      candidate_id: judged,
      ...(scope.until === '' ? {} : { text: scopeText(scope) })
    });
  const toggle = (next: Panel) => setPanel(open === next ? null : next);
  const button = (verb: Verb, onClick: () => void, kind = '', expanded?: boolean, about = id) => {
    const { label, help } = buttonOf(verb, about);
    return (
      can(verb) && (
        <button
          type="button"
          class={`cg-button ${kind}`}
          disabled={busy}
          aria-expanded={expanded}
          data-verb={verb}
          data-other={(verb === 'approve' && about !== id) || undefined}
          title={help}
          onClick={onClick}
        >
          {label}
        </button>
      )
    );
  };

  return (
    <section class="cg-actions" aria-label={trans.__('Actions')}>
      <div class="cg-action-bar">
        <div class="cg-row">
          {elsewhere && (view.status === 'review' || view.status === 'running') && (
            <button type="button" class="cg-button" onClick={() => onSelect(id)}>
              {view.status === 'review' ? trans.__('Review %1', id) : trans.__('Back to %1', id)}
            </button>
          )}
          {approvable &&
            button(
              'approve',
              () => (slower ? toggle('approve') : approve()),
              slower || elsewhere ? '' : 'cg-primary',
              slower ? open === 'approve' : undefined,
              judged
            )}
          {approvable && !view.settings.auto && <ScopeChoice scope={scope} onChange={setScope} />}
          {!elsewhere && (
            <>
              {button('reject', () => toggle('reject'), '', open === 'reject')}
              {button('edit', () => toggle('edit'), '', open === 'edit')}
              {button('retry', () => say('retry'))}
              {button('approve_unproven', () => toggle('approve_unproven'), '', open === 'approve_unproven')}
            </>
          )}
          {selected !== null &&
            view.branch_points.includes(selected.id) &&
            button('branch', () => say('branch', { target_id: selected.id }), '', undefined, selected.id)}
          {button('resume', () => say('resume'), 'cg-primary')}
          {ratio !== null && (approvable || !elsewhere) && (
            <span class={slower ? 'cg-tone-warn' : odds === null || odds >= SURE ? 'cg-tone-good' : ''}>
              {how}
              {odds !== null && odds < 10 && (
                <span class="cg-muted">
                  {' · '}
                  {trans.__('%1 of 10 such predicted gains come true when measured', odds)}
                </span>
              )}
            </span>
          )}
        </div>
        {button('stop', () => say('stop'), 'cg-danger')}
      </div>
      <p class={`cg-reply${failed ? ' cg-tone-bad' : ''}`} role={failed ? 'alert' : 'status'}>
        {failed && <span aria-hidden="true">✕ </span>}
        {message}
      </p>
      {open === 'reject' && (
        <Reject
          id={id}
          templates={byTemplates(view)}
          busy={busy}
          onReject={text => say('reject', { text })}
          onCancel={() => setPanel(null)}
        />
      )}
      {open === 'approve' && slower && (
        <Slower id={judged} how={how} busy={busy} onApprove={approve} onCancel={() => setPanel(null)} />
      )}
      {open === 'approve_unproven' && (
        <Unproven
          id={id}
          busy={busy}
          onApprove={() => say('approve_unproven')}
          onCancel={() => setPanel(null)}
        />
      )}
      {open === 'edit' && current !== null && (
        <Editor
          id={id}
          original={current.source}
          templates={byTemplates(view)}
          draft={drafts.current.get(id) ?? current.source}
          busy={busy}
          look={look}
          onDraft={text => drafts.current.set(id, text)}
          onRun={text => say('edit', { text })}
          onCancel={() => setPanel(null)}
        />
      )}
    </section>
  );
}
