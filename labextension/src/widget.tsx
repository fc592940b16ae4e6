import type { RenderProps } from '@anywidget/types';
import { Requests } from './requests';
import { announceRest } from './rest';
import { mount, unmount } from './run/mount';
import { MIME_TYPE } from './run/read';
import type { RunView } from './schema';

interface IState {
  [name: string]: unknown;
  view: RunView;
  /** The static forms of the run where it last rested; empty before. */
  resting: Partial<Record<'text/plain' | 'text/html', string>>;
}

/** anywidget's entry: shows the synced trait `view`, and sends the analyst's answers as custom messages. */
function render({ model, el }: RenderProps<IState>): () => void {
  const requests = new Requests(model);
  const show = () => mount(el, model.get('view'), requests);
  const rest = () => {
    const { 'text/plain': plain, 'text/html': html } = model.get('resting');
    if (plain !== undefined && html !== undefined) {
      announceRest(el, { 'text/plain': plain, 'text/html': html, [MIME_TYPE]: model.get('view') });
    }
  };
  model.on('change:view', show);
  model.on('change:resting', rest);
  show();
  // Once the host has put the view into its page: a page that was reloaded meanwhile may hold an older moment.
  const placed = setTimeout(rest, 0);
  return () => {
    clearTimeout(placed);
    model.off('change:view', show);
    model.off('change:resting', rest);
    requests.dispose();
    unmount(el);
  };
}

export default { render };
