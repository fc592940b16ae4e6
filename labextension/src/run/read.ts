import type { ConfigValue, RunView } from '../schema';
import { trans } from './words';

export const MIME_TYPE = 'application/vnd.cutegen.run+json';
const VERSION = 1;

/** A run read from outside, or why it cannot be shown. */
export type Read = { view: RunView } | { problem: string };

/**
 * Checks what a renderer relies on before it starts: the version, and the lists it walks. Python wrote and validated
 * the rest; text in it is shown as text whatever it says.
 */
export function readRun(data: unknown): Read {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return { problem: trans.__('This is not a saved run: a JSON object was expected.') };
  }
  const fields = data as Record<string, unknown>;
  if (Object.keys(fields).length === 0) {
    return { problem: trans.__('Waiting for the run…') };
  }
  if (fields.schema_version !== VERSION) {
    const found = String(fields.schema_version);
    return {
      problem: trans.__(
        'This run was saved in format %1; this view reads format %2. Update cutegen-lab where JupyterLab runs, then reload the page.',
        found,
        VERSION
      )
    };
  }
  for (const name of ['candidates', 'trend', 'timeline', 'verbs', 'log']) {
    if (!Array.isArray(fields[name])) {
      return { problem: damaged(name) };
    }
  }
  for (const name of ['problem', 'settings', 'sol']) {
    if (typeof fields[name] !== 'object' || fields[name] === null) {
      return { problem: damaged(name) };
    }
  }
  return { view: completed(data as RunView) };
}

const damaged = (name: string) =>
  trans.__('This saved run is damaged: its “%1” is missing. Export the run again.', name);

/** With what candidates of runs lack that were saved before there was it. */
function completed(view: RunView): RunView {
  const added = {
    config_changes: [],
    specialised: null,
    heat: [],
    metrics: [],
    counters: [],
    baselines: {},
    baseline_intervals: {},
    terms: [],
    notes: []
  };
  return {
    ...{ approvable: [], branch_points: view.candidates.map(each => each.id), scope: null, cost: null },
    ...view,
    candidates: view.candidates.map(each => {
      const { config, specialised } = { ...added, ...each };
      return {
        ...added,
        ...each,
        config: Array.isArray(config)
          ? config
          : Object.entries<ConfigValue['value']>(config).map(([name, value]) => ({ name, value })),
        specialised: specialised && { ...{ heat: [], same_lines: {} }, ...specialised }
      };
    })
  };
}
