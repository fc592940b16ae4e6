import type { RenderProps } from '@anywidget/types';
import { Requests } from './requests';
import { mount, unmount } from './run/mount';
import type { RunView } from './schema';

interface IState {
  [name: string]: unknown;
  view: RunView;
}

/** anywidget's entry: shows the synced trait `view`, and sends the analyst's answers as custom messages. */
function render({ model, el }: RenderProps<IState>): () => void {
  const requests = new Requests(model);
  const show = () => mount(el, model.get('view'), answer => requests.ask(answer));
  model.on('change:view', show);
  show();
  return () => {
    model.off('change:view', show);
    requests.dispose();
    unmount(el);
  };
}

export default { render };
