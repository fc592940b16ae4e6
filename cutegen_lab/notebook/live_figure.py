"""A plotly figure that is drawn anew when it changes, on slow machines too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anywidget
import traitlets

from cutegen_lab.notebook.search_figure import plain_figure
from cutegen_lab.notebook.widget import bundle_path

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class LiveFigure(anywidget.AnyWidget):
    """Shows ``figure``. Plotly's own ``FigureWidget`` stays empty where its 5 MB take over two seconds to load (a
    limit of anywidget 0.11); this one loads plotly after its own module."""

    _esm = bundle_path("figure.js")
    _plotly = traitlets.Unicode().tag(sync=True)
    figure = traitlets.Dict().tag(sync=True)

    def __init__(self, figure: Figure) -> None:
        from plotly.offline import get_plotlyjs

        super().__init__(figure=plain_figure(figure), _plotly=get_plotlyjs())

    def show(self, figure: Figure) -> None:
        self.figure = plain_figure(figure)
