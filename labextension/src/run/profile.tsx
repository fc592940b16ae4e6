import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { draw, fit, loadPlotly, type IPlotly } from '../plotly';
import type { PlotEntry, PlotList, PlotView } from '../schema';
import { messageOf, useAnswer } from './answer';
import { Save, saveText } from './saving';
import { Tables } from './tables';
import type { ITabProps } from './tabs';
import type { Look } from './verbs';
import { trans } from './words';

const IMAGE_PX = 1000; // width of an exported image

/** Plotly, once it is loaded, or why it is not. */
function usePlotly(look: Look, id: string): { plotly: IPlotly | null; error: string } {
  const [loaded, setLoaded] = useState<{ plotly: IPlotly | null; error: string }>({
    plotly: null,
    error: ''
  });
  useEffect(() => {
    let gone = false;
    loadPlotly(() => look({ query: 'plotly', candidate_id: id }) as Promise<string>).then(
      plotly => gone || setLoaded({ plotly, error: '' }),
      (reason: unknown) => gone || setLoaded({ plotly: null, error: messageOf(reason) })
    );
    return () => {
      gone = true;
    };
  }, [look, id]);
  return loaded;
}

interface IFigureProps {
  plot: PlotView;
  plotly: IPlotly;
  /** Name of its files, without their ends. */
  file: string;
}

/** A plot, its numbers as tables, and both as files. */
function Figure({ plot, plotly, file }: IFigureProps) {
  const place = useRef<HTMLDivElement>(null);
  const [error, setError] = useState('');
  const { figure, title, tables, csv, trace } = plot;
  const say = (work: Promise<unknown>) =>
    void work.then(
      () => setError(''),
      (reason: unknown) => setError(messageOf(reason))
    );
  useEffect(() => {
    if (place.current) {
      say(draw(plotly, place.current, figure, false));
    }
  }, [plotly, figure]);
  useEffect(() => (place.current ? fit(plotly, place.current) : undefined), [plotly]);
  const image = (format: 'png' | 'svg') => {
    const options = { format, filename: file, width: IMAGE_PX, height: figure.layout.height, scale: 2 };
    if (place.current) {
      say(plotly.downloadImage(place.current, options));
    }
  };
  return (
    <>
      <div class="cg-scroll cg-figure" role="group" aria-label={title} tabIndex={0}>
        <div role="img" aria-label={trans.__('%1; its numbers are in the table', title)} ref={place} />
      </div>
      <Save
        formats={{
          CSV: () => saveText(`${file}.csv`, csv, 'text/csv'),
          PNG: () => image('png'),
          SVG: () => image('svg'),
          ...(trace !== '' && {
            Perfetto: () => saveText(`${file}.trace.json`, trace, 'application/json')
          })
        }}
        error={error}
      />
      <Tables
        tables={tables.map(({ title: of, columns, rows, count }) => ({
          title: rows.length < count ? trans.__('%1: the first %2 of %3', of, rows.length, count) : of,
          heads: columns,
          rows
        }))}
      />
    </>
  );
}

interface IPlotProps {
  id: string;
  name: string;
  /** Changes when more is known of the candidate. */
  known: string;
  look: Look;
  run: string;
}

/** One plot, asked for when it is first shown. */
function Plot({ id, name, known, look, run }: IPlotProps) {
  const { found, error } = useAnswer<PlotView>(look, known, { query: 'plot', candidate_id: id, text: name });
  const { plotly, error: failure } = usePlotly(look, id);
  return found === null || plotly === null ? (
    <p class="cg-empty" role="status">
      {error || failure || trans.__('Drawing…')}
    </p>
  ) : (
    <Figure plot={found} plotly={plotly} file={`${run}-${id}-${name}`} />
  );
}

interface IChoiceProps {
  id: string;
  plots: readonly PlotEntry[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
}

/** Chooses a plot; below it stands what the chosen one shows, and why there are no others. */
function Choice({ id, plots, chosen, onChoose }: IChoiceProps) {
  const group = useId();
  return (
    <fieldset class="cg-choices cg-plot-list">
      <legend>{trans.__('Plots of %1', id)}</legend>
      {plots.map(({ name, help, missing }) => (
        <label key={name} title={help}>
          <input
            type="radio"
            name={group}
            value={name}
            checked={name === chosen}
            disabled={missing !== ''}
            onChange={() => onChoose(name)}
          />
          {name}
        </label>
      ))}
      <p>{plots.find(each => each.name === chosen)?.help ?? trans.__('There is nothing to plot yet.')}</p>
      {plots.map(
        ({ name, missing }) => missing && <p key={name} class="cg-muted">{`${name}: ${missing}`}</p>
      )}
    </fieldset>
  );
}

export interface IProfileProps {
  id: string;
  /** Changes when more is known of the candidate. */
  known: string;
  look: Look;
  run: string;
  /** The plot that the reader chose last, of whichever candidate. */
  wanted: string;
  onWant: (name: string) => void;
}

/** The plots of a candidate. */
export function Profile({ wanted, onWant, ...given }: IProfileProps) {
  const { id, known, look } = given;
  const { found, error } = useAnswer<PlotList>(look, known, { query: 'plots', candidate_id: id });
  if (found === null) {
    return (
      <p class="cg-empty" role="status">
        {error || trans.__('Loading…')}
      </p>
    );
  }
  const there = found.plots.filter(each => each.missing === '');
  const chosen = (there.find(each => each.name === wanted) ?? there[0])?.name;
  return (
    <section class="cg-profile" aria-label={trans.__('Profile')}>
      <Choice id={id} plots={found.plots} chosen={chosen} onChoose={onWant} />
      {chosen !== undefined && <Plot key={chosen} name={chosen} {...given} />}
    </section>
  );
}

/** The plots of the selected candidate as a tab. */
export function ProfileTab({ view, candidate, look }: ITabProps) {
  const [wanted, setWanted] = useState('');
  if (look === null) {
    return <p class="cg-empty">{trans.__('Plots are shown while a kernel is attached.')}</p>;
  }
  const done = candidate.steps.filter(step => step.status === 'done').length;
  return (
    <Profile
      key={candidate.id}
      id={candidate.id}
      known={`${done} ${view.trend.length}`}
      look={look}
      run={view.run_id}
      wanted={wanted}
      onWant={setWanted}
    />
  );
}
