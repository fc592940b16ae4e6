// A plotly figure that follows its `figure`. anywidget 0.11 drops a widget whose module takes over two seconds to load:
// this one is small, and loads plotly's 5 MB while it renders.

/** Plotly, loaded once a page from the text of its script. */
function loaded(text) {
  globalThis.cutegenPlotly ??= (async () => {
    const parts = ['const module = { exports: {} }, define = null;\n', text, '\nexport default module.exports;'];
    const url = URL.createObjectURL(new Blob(parts, { type: 'text/javascript' }));
    try {
      return (await import(url)).default;
    } finally {
      URL.revokeObjectURL(url);
    }
  })();
  return globalThis.cutegenPlotly;
}

async function render({ model, el }) {
  const { height } = model.get('figure').layout;
  el.style.minHeight = `${height}px`; // The page does not jump when plotly is there.
  const plotly = await loaded(model.get('_plotly'));
  const draw = () => {
    const { data, layout } = model.get('figure');
    return plotly.react(el, structuredClone(data), structuredClone(layout), { responsive: true });
  };
  model.on('change:figure', draw);
  await draw();
  return () => {
    model.off('change:figure', draw);
    plotly.purge(el);
  };
}

export default { render };
