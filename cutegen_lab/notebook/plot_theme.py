"""Look of the figures: no background of their own, and colours that can be read on JupyterLab's light and dark pages.

Plotly's renderer does not know the theme of the page, and a saved figure may be opened under another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
    from plotly.graph_objects.layout import Template

BLUE, ORANGE, RED, GREY = "#3b7dd8", "#c4560f", "#d9453c", "#797979"
"""Colours of marks. The grey, also used for text, has the same contrast to white and to the dark page: 4.3 to 1."""
HUES = (BLUE, ORANGE, "#2e8540", "#8e5bd0", "#b8477c", "#1c8591", "#8a6d1d", GREY)
"""Colours of the parts of one bar; parts are also told apart by a name next to them or by their pattern."""
PATTERNS = ("", "/", ".", "x")
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


def laid_out(figure: Figure, title: str, note: str = "", rows: int = 12, top: int = 0) -> Figure:
    """``figure`` with the theme, a title and the lines of a note below it, both HTML. ``rows``: height of the plot, in
    bars; ``top``: pixels of labels above the plot."""
    notes, inner = note.splitlines(), max(rows, 4) * 26
    above, below = 60 + 16 * max(len(notes), 1) + top, 84
    height = above + inner + below
    lines = [f"<b>{title}</b>", *(f"<sub>{line}</sub>" for line in notes)]
    figure.update_layout(
        template=theme(), title_text="<br>".join(lines), title_font_size=15, title_x=0, title_xref="paper",
        title_xanchor="left", title_y=1 - 14 / height, title_yanchor="top", height=height, font_size=12,
        margin={"l": 60, "r": 30, "t": above, "b": below},
        legend={"orientation": "h", "y": -48 / inner, "yanchor": "top", "x": 0.0, "traceorder": "normal"},
    )  # fmt: skip
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    return figure
