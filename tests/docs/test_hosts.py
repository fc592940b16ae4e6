"""What hosts show that have no widget manager and run no script of ours: GitHub, nbviewer, nbconvert."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter

TUTORIALS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
RUN, FIGURE = "application/vnd.cutegen.run+json", "application/vnd.plotly.v1+json"


def outputs(path: Path, kind: str) -> Iterator[Mapping[str, Any]]:
    """The bundles of a saved notebook that have data of this kind."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            if kind in output.get("data", {}):
                yield {key: "".join(v) if isinstance(v, list) else v for key, v in output["data"].items()}


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_static_view_of_a_run_is_whole(path: Path) -> None:
    for bundle in outputs(path, RUN):
        view, page = bundle[RUN], unescape(bundle["text/html"])
        assert "<script" not in page.lower() and 'src="http' not in page
        assert f"cutegen run of {view['problem']['name']}" in page
        for candidate in view["candidates"]:
            assert candidate["id"] in page and candidate["verdict"].replace("_", " ") in page
            assert candidate["title"] in page and candidate["id"] in bundle["text/plain"]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_figure_has_a_picture(path: Path) -> None:
    for bundle in outputs(path, FIGURE):
        assert bundle["image/png"].startswith("iVBOR"), "record the notebook in JupyterLab: npm run ui:record"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_nbconvert_shows_the_static_view_in_place_of_the_widget(path: Path) -> None:
    page, _ = HTMLExporter().from_notebook_node(nbformat.read(path, as_version=4))
    assert "application/vnd.jupyter.widget-view+json" not in page
    runs = list(outputs(path, RUN))
    assert page.count('aria-label="cutegen run of') == len(runs)
    for bundle in outputs(path, FIGURE):
        assert "".join(bundle["image/png"].split()) in page.replace("\n", "")
