import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { mountComparison } from '../run/compared-runs';
import type { Look } from '../run/verbs';
import type { RunKey, RunView } from '../schema';
import { keyOf } from '../runs/words';
import { serverBehind } from './behind';
import { StoreTab, type ISource } from './store-tab';

export namespace CommandIDs {
  export const compare = 'cutegen-lab:compare-runs';
}

/** A run, and what it is called in the list of runs. */
export interface INamedKey extends RunKey {
  title: string;
}

/** What tells two runs apart: their titles, or their names where both are called the same. */
function namesOf(before: INamedKey, after: INamedKey): readonly [string, string] {
  return before.title === after.title ? [before.run_id, after.run_id] : [before.title, after.title];
}

/** Two runs beside each other in the main area. */
export class ComparisonTab extends StoreTab {
  constructor(
    readonly before: INamedKey,
    readonly after: INamedKey,
    server: ISource,
    private readonly open: (key: RunKey) => void,
    trans: TranslationBundle
  ) {
    super([before, after], server, trans);
    this.id = ComparisonTab.idOf(before, after);
    const lookAt = (key: RunKey): Look => serverBehind(query => server.look(key, query), trans).look;
    this.looks = [lookAt(before), lookAt(after)];
    this.title.label = namesOf(before, after).join(' · ');
  }

  static idOf(before: RunKey, after: RunKey): string {
    return `cutegen-comparison-${keyOf(before)}-${keyOf(after)}`;
  }

  protected override show_([before, after]: readonly unknown[], host: HTMLElement): void {
    const called = (key: INamedKey, run: unknown): INamedKey => {
      const { title, problem } = run as Partial<RunView>;
      return { ...key, title: title || (problem?.name ?? key.title) };
    };
    const names = namesOf(called(this.before, before), called(this.after, after));
    this.title.label = names.join(' · ');
    mountComparison(host, [
      { title: names[0], data: before, look: this.looks[0], onOpen: () => this.open(this.before) },
      { title: names[1], data: after, look: this.looks[1], onOpen: () => this.open(this.after) }
    ]);
  }

  private readonly looks: readonly [Look, Look];
}

function named(value: unknown): INamedKey | null {
  const { store, run_id, title } = (value ?? {}) as Partial<INamedKey>;
  return typeof store === 'string' && typeof run_id === 'string' && typeof title === 'string'
    ? { store, run_id, title }
    : null;
}

const argsOf = ({ store, run_id, title }: INamedKey): ReadonlyPartialJSONObject => ({ store, run_id, title });

/** Tabs that compare two runs, which come back with the page. What it returns opens one. */
export function addComparisons(
  app: JupyterFrontEnd,
  server: ISource,
  restorer: ILayoutRestorer | null,
  open: (key: RunKey) => void,
  trans: TranslationBundle
): (before: INamedKey, after: INamedKey) => void {
  const tracker = new WidgetTracker<ComparisonTab>({ namespace: 'cutegen-comparisons' });
  app.commands.addCommand(CommandIDs.compare, {
    label: trans.__('Compare two CuTeGen runs'),
    execute: args => {
      const [before, after] = [named(args.before), named(args.after)];
      if (before === null || after === null) {
        return;
      }
      let tab = tracker.find(each => each.id === ComparisonTab.idOf(before, after)) ?? null;
      if (tab === null) {
        tab = new ComparisonTab(before, after, server, open, trans);
        void tracker.add(tab);
        app.shell.add(tab, 'main');
      }
      app.shell.activateById(tab.id);
    }
  });
  void restorer?.restore(tracker, {
    command: CommandIDs.compare,
    args: tab => ({ before: argsOf(tab.before), after: argsOf(tab.after) }),
    name: tab => tab.id
  });
  return (before, after) =>
    void app.commands.execute(CommandIDs.compare, { before: argsOf(before), after: argsOf(after) });
}
