/** What is called of plotly. */
export interface IPlotly {
  react(el: HTMLElement, data: unknown[], layout: object, config: object): Promise<unknown>;
  purge(el: HTMLElement): void;
  downloadImage(el: HTMLElement, options: object): Promise<unknown>;
  Plots: { resize(el: HTMLElement): Promise<unknown> };
}

export interface IFigure {
  data: unknown[];
  layout: { dragmode?: unknown };
}

/** Every bundle on a page, and every copy of one, takes the same plotly. */
const page = globalThis as { cutegenPlotly?: Promise<IPlotly> | undefined };

async function evaluated(script: string): Promise<IPlotly> {
  const parts = [
    'const module = { exports: {} }, define = null;\n',
    script,
    '\nexport default module.exports;'
  ];
  const url = URL.createObjectURL(new Blob(parts, { type: 'text/javascript' }));
  try {
    return ((await import(/* webpackIgnore: true */ /* @vite-ignore */ url)) as { default: IPlotly }).default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Plotly, loaded once a page from the text of its script, which is asked for then. */
export function loadPlotly(script: () => Promise<string>): Promise<IPlotly> {
  page.cutegenPlotly ??= script()
    .then(evaluated)
    .catch((reason: unknown) => {
      page.cutegenPlotly = undefined; // The next one to ask tries again.
      throw reason;
    });
  return page.cutegenPlotly;
}

/**
 * Draws a figure in `el`, or what changed of it. Plotly writes into what it is given: it gets a copy. Where dragging
 * moves the figure, the wheel zooms.
 */
export async function draw(plotly: IPlotly, el: HTMLElement, { data, layout }: IFigure, toolBar: boolean) {
  const config = { displayModeBar: toolBar, scrollZoom: layout.dragmode === 'pan' };
  await plotly.react(el, structuredClone(data), structuredClone(layout), config);
}

/** Keeps a figure as wide as its element until what is returned is called, which takes the figure away. */
export function fit(plotly: IPlotly, el: HTMLElement): () => void {
  let width = el.clientWidth;
  const observer = new ResizeObserver(() => {
    // Not when it is first heard, nor while its tab is hidden.
    if (el.clientWidth > 0 && el.clientWidth !== width && el.classList.contains('js-plotly-plot')) {
      width = el.clientWidth;
      void plotly.Plots.resize(el);
    }
  });
  observer.observe(el);
  return () => {
    observer.disconnect();
    plotly.purge(el);
  };
}
