"""A profile's figure shows the numbers of the profiles it is given, and text as text."""

from __future__ import annotations

import re

import pytest
from plotly.graph_objects import Figure

from cutegen_lab.core.trial import LineCounters, Profile
from cutegen_lab.notebook.profile_figure import profile_figure
from cutegen_lab.notebook.search_figure import search_figure
from tests.notebook.test_search import trace

PAGES = {"white": "#ffffff", "JupyterLab dark": "#111111"}
SOURCE = "\n".join(["import cutlass", "x = <b>load</b>(gX[None, 0], rX)", "store(rX, gX)"])
EMULATOR = Profile(
    "emulator", "memory bandwidth",
    {"warp_instructions": 1e3, "global_load_sectors": 300.0, "global_store_sectors": 100.0, "shared_wavefronts": 0.0},
    lines=(
        LineCounters(2, {"global_load_sectors": 300.0, "moved_bytes": 9600.0}),
        LineCounters(3, {"global_store_sectors": 100.0, "moved_bytes": 3200.0}),
        LineCounters(0, {"warp_instructions": 5.0}),
    ),
)  # fmt: skip
HARDWARE = Profile(
    "hardware", "L2",
    {"warp_instructions": 900.0, "global_load_sectors": 301.0, "shared_load_wavefronts": 7.0,
     "shared_store_wavefronts": 5.0},
)  # fmt: skip


def test_both_sources_are_on_one_axis_under_the_same_names() -> None:
    figure = profile_figure([EMULATOR, HARDWARE], SOURCE, "softmax c1")
    mine, theirs = (t for t in figure.data if t.type == "scatter")
    assert list(mine.y) == list(theirs.y)
    values = {t.name: dict(zip(t.y, t.x, strict=True)) for t in (mine, theirs)}
    assert values["emulator"]["global load sectors"] == 300.0
    assert values["hardware"]["global load sectors"] == 301.0
    assert values["hardware"]["shared wavefronts"] == 12.0  # what ncu counts in two parts
    assert values["emulator"]["shared wavefronts"] is None and values["hardware"]["global store sectors"] is None
    assert mine.marker.symbol != theirs.marker.symbol  # not colour alone
    assert "emulator: memory bandwidth<br>hardware: L2" in figure.layout.title.text


def test_lines_are_shares_of_what_limits_and_their_text_is_escaped() -> None:
    (bars,) = (t for t in profile_figure([EMULATOR, HARDWARE], SOURCE).data if t.type == "bar")
    assert list(bars.x) == [75.0, 25.0]
    assert bars.y[0].startswith("2  x = &lt;b&gt;load&lt;/b&gt;") and bars.y[1].startswith("3  store")


def test_without_counts_by_line_the_figure_says_so() -> None:
    figure = profile_figure([HARDWARE], SOURCE)
    assert not [t for t in figure.data if t.type == "bar"]
    assert "no counts by line" in [a.text for a in figure.layout.annotations]
    with pytest.raises(ValueError, match="no profile"):
        profile_figure([], SOURCE)


def test_a_profile_is_one_short_line() -> None:
    assert repr(EMULATOR) == "<Profile by the emulator: memory bandwidth; 4 counters>"


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``: WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def colours(value: object) -> set[str]:
    """Every ``#rrggbb`` in a figure's JSON, apart from scales of many colours."""
    if isinstance(value, dict):
        return set().union(*(colours(v) for k, v in value.items() if k not in ("colorscale", "colorway", "data")))
    if isinstance(value, list | tuple):
        return set().union(*map(colours, value))
    return {value} if isinstance(value, str) and re.fullmatch("#[0-9a-f]{6}", value) else set()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("figure", [profile_figure([EMULATOR, HARDWARE], SOURCE, "softmax"), search_figure(trace())])
def test_figures_can_be_read_on_light_and_dark_pages(figure: Figure, page: str) -> None:
    shown = figure.to_plotly_json()
    layout = figure.layout.template.layout
    for behind in ("paper_bgcolor", "plot_bgcolor"):
        assert layout[behind] == "rgba(0,0,0,0)" and figure.layout[behind] is None, "the page's own"
    for text in (layout.font.color, layout.title.font.color):
        assert contrast(text, PAGES[page]) > 4.3
    marks = colours(shown["data"])
    assert marks and all(contrast(mark, PAGES[page]) >= 3 for mark in marks)
