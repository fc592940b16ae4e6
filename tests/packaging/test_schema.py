"""Python and TypeScript agree on the run's JSON shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_lab.cutespec.parse import DTYPES, STATEMENTS
from cutegen_lab.views.compare import comparison
from cutegen_lab.views.model import MIME_TYPE, VIEW_SCHEMA_VERSION, ComparisonView, RunView, json_schema

FRONT = Path(__file__).parents[2] / "labextension"
SAMPLES = sorted((FRONT / "tests/samples").glob("*.json"))


def test_committed_schema_is_what_python_says() -> None:
    # src/schema.ts is held to this file by `npm run check:schema`
    committed = json.loads((FRONT / "run-view.schema.json").read_text(encoding="utf-8"))
    assert committed == json_schema(), "the view changed: run `npm run schema` in labextension/ and commit both files"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_are_run_views(path: Path) -> None:
    view = RunView.model_validate_json(path.read_text(encoding="utf-8"))
    assert view.schema_version == VIEW_SCHEMA_VERSION


def test_the_compared_sample_is_what_python_says() -> None:
    view = RunView.model_validate_json((FRONT / "tests/samples/review.json").read_text(encoding="utf-8"))
    committed = (FRONT / "tests/compared.json").read_text(encoding="utf-8")
    assert ComparisonView.model_validate_json(committed) == comparison(view, "c1", "c5"), "run make_samples.py"


def test_there_are_samples_of_every_status() -> None:
    seen = {json.loads(path.read_text(encoding="utf-8"))["status"] for path in SAMPLES}
    assert seen == {"running", "review", "done", "interrupted"}


def test_front_end_names_the_same_mime_type_and_version() -> None:
    read = (FRONT / "src/run/read.ts").read_text(encoding="utf-8")
    assert f"MIME_TYPE = '{MIME_TYPE}'" in read
    assert f"VERSION = {VIEW_SCHEMA_VERSION};" in read


def test_front_end_colours_the_same_words_of_a_spec() -> None:
    read = (FRONT / "src/code/cutespec.ts").read_text(encoding="utf-8")
    assert f"(?:{'|'.join(STATEMENTS)})" in read and f"(?:{'|'.join(DTYPES)})" in read
