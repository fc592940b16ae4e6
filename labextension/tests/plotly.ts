// A plotly that draws nothing: jsdom lays nothing out.
import { vi } from 'vitest';
import type { IPlotly } from '../src/plotly';

const page = globalThis as { cutegenPlotly?: Promise<IPlotly> | undefined };

/** Puts it on the page, where a view finds it loaded. */
export function givePlotly() {
  const plotly = {
    react: vi.fn<IPlotly['react']>(() => Promise.resolve()),
    purge: vi.fn<IPlotly['purge']>(),
    downloadImage: vi.fn<IPlotly['downloadImage']>(() => Promise.resolve()),
    Plots: { resize: vi.fn<IPlotly['Plots']['resize']>(() => Promise.resolve()) }
  };
  page.cutegenPlotly = Promise.resolve(plotly);
  return plotly;
}

/** Takes it off: it is loaded anew. */
export function takePlotly(): void {
  page.cutegenPlotly = undefined;
}
