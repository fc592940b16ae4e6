import type { RenderProps } from '@anywidget/types';
import { draw, fit, loadPlotly, type IFigure } from './plotly';

interface IState {
  [name: string]: unknown;
  figure: IFigure & { layout: { height: number } };
  _plotly: string;
}

/**
 * anywidget's entry of a figure that follows its `figure`. anywidget 0.11 drops a widget whose module takes over two
 * seconds to load: this one is small, and loads plotly's 5 MB while it renders.
 */
async function render({ model, el }: RenderProps<IState>): Promise<() => void> {
  el.style.minHeight = `${model.get('figure').layout.height}px`; // The page does not jump when plotly is there.
  const plotly = await loadPlotly(() => Promise.resolve(model.get('_plotly')));
  const drawn = () => draw(plotly, el, model.get('figure'), true);
  const show = () => void drawn();
  model.on('change:figure', show);
  await drawn();
  const end = fit(plotly, el);
  return () => {
    model.off('change:figure', show);
    end();
  };
}

export default { render };
