import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';
import type { CandidateView, RunView } from '../schema';
import { Compare } from './compare';
import { LayoutsTab } from './layouts';
import { ProfileTab } from './profile';
import { Review } from './review';
import type { Ask, Look } from './verbs';
import { trans } from './words';

/** What every tab is given about the selected candidate. */
export interface ITabProps {
  view: RunView;
  candidate: CandidateView;
  /** The candidate it was made from; null for one that has none. */
  parent: CandidateView | null;
  /** The candidate it is compared with; null for none of the reader's choice. */
  compared: CandidateView | null;
  onCompare: (id: string) => void;
  /** null where no kernel can hear the view. */
  ask: Ask | null;
  /** null where nobody can be asked (a saved run). */
  look: Look | null;
}

export const COMPARE = 'compare';

export interface ITab {
  id: string;
  label: string;
  Panel: (props: ITabProps) => ComponentChildren;
}

/** The views of the selected candidate, in the order of the tab bar. A new view is one entry here. */
export const TABS: readonly ITab[] = [
  {
    id: 'review',
    get label() {
      return trans.__('Review');
    },
    Panel: Review
  },
  {
    id: COMPARE,
    get label() {
      return trans.__('Compare');
    },
    Panel: Compare
  },
  {
    id: 'profile',
    get label() {
      return trans.__('Profile');
    },
    Panel: ProfileTab
  },
  {
    id: 'layouts',
    get label() {
      return trans.__('Layouts');
    },
    Panel: LayoutsTab
  }
];

const MOVES: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1
};

interface ITabsProps extends ITabProps {
  selectedId: string;
  onSelect: (id: string) => void;
  tabs?: readonly ITab[];
}

/** The tab bar and the selected tab's panel; no bar for a single tab. Arrow keys, Home and End move along the bar. */
export function Tabs({ selectedId, onSelect, tabs = TABS, ...given }: ITabsProps) {
  const name = useId();
  const bar = useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    tabs.findIndex(tab => tab.id === selectedId)
  );
  const selected = tabs[at];
  if (selected === undefined) {
    return null;
  }
  const { Panel } = selected;
  if (tabs.length === 1) {
    return <Panel {...given} />;
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const to = tabs[MOVES[event.key]?.(at, tabs.length) ?? -1];
    if (to !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      onSelect(to.id);
      bar.current?.querySelector<HTMLElement>(`[data-tab="${to.id}"]`)?.focus();
    }
  };
  return (
    <>
      <div
        class="cg-tabs"
        role="tablist"
        aria-label={trans.__('Views of the candidate')}
        ref={bar}
        onKeyDown={onKeyDown}
      >
        {tabs.map(tab => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            class="cg-tab"
            id={`${name}-${tab.id}`}
            data-tab={tab.id}
            aria-selected={tab === selected}
            aria-controls={`${name}-panel`}
            tabIndex={tab === selected ? 0 : -1}
            onClick={() => onSelect(tab.id)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div
        class="cg-tab-panel"
        role="tabpanel"
        id={`${name}-panel`}
        aria-labelledby={`${name}-${selected.id}`}
      >
        <Panel {...given} />
      </div>
    </>
  );
}
