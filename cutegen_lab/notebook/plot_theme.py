"""Look of the figures: no background of their own, and colours that can be read on JupyterLab's light and dark pages.

Plotly's renderer does not know the theme of the page, and a saved figure may be opened under another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects.layout import Template

BLUE, ORANGE, RED, GREY = "#3b7dd8", "#c4560f", "#d9453c", "#797979"
"""Colours of marks. The grey, also that of texts, is as far from white as from the dark page: 4.3 to 1."""
_CLEAR, _GRID = "rgba(0,0,0,0)", "rgba(128,128,128,0.3)"


def theme() -> Template:
    """The template of every figure."""
    import plotly.io
    from plotly.graph_objects import layout

    lines = {"gridcolor": _GRID, "linecolor": _GRID, "zerolinecolor": _GRID}
    return layout.Template(plotly.io.templates["plotly_white"]).update(
        layout={
            "paper_bgcolor": _CLEAR, "plot_bgcolor": _CLEAR, "xaxis": lines, "yaxis": lines,
            "font": {"color": GREY}, "title": {"font": {"color": GREY}},
        }
    )  # fmt: skip
