"""Records are tables that read back as they were written, and stay small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.harness import RESULTS, read_configs, read_table, write_configs, write_table

MOST_BYTES = 100_000


def test_no_record_is_large() -> None:
    large = {path.name: path.stat().st_size for path in RESULTS.iterdir() if path.stat().st_size > MOST_BYTES}
    assert not large, "write the fields that somebody reads, as benchmarks.harness.write_table does"


def test_every_record_is_cited() -> None:
    """By a document, a tutorial, or the code that has a constant from it."""
    root = RESULTS.parents[1]
    places = [*root.glob("docs/*.md"), *root.glob("notebooks/*.ipynb"), *root.glob("cutegen_lab/**/*.py")]
    texts = [path.read_text(encoding="utf-8") for path in (*places, RESULTS / "README.md")]
    assert not [path.name for path in RESULTS.glob("*.json") if not any(path.stem in text for text in texts)]


def test_a_table_reads_back(tmp_path: Path) -> None:
    head = {"device": "a card", "why": {"a": {"of": 1}}}
    rows = [
        {"case": "a", "us": {"c0": 1.25, "torch.compile": 2.0}, "notes": ["é"]},
        {"case": "b", "fault": "too slow"},
        {"case": "c", "us": {"c0": 0.5}},
    ]
    write_table(tmp_path / "table.json", head, rows)
    assert read_table(tmp_path / "table.json") == (head, rows)
    lines = (tmp_path / "table.json").read_text().splitlines()
    assert '  ["b",null,null,null,"too slow"],' in lines and '  ["c",0.5]' in lines
    assert not list(tmp_path.glob("*.new"))


def test_numbers_have_five_digits_and_whole_ones_all(tmp_path: Path) -> None:
    write_table(tmp_path / "table.json", {"of": 0.123456789}, [{"x": 1234.5678, "y": 123456789.0, "z": [2.000001e-9]}])
    head, [row] = read_table(tmp_path / "table.json")
    assert head == {"of": 0.12346} and row == {"x": 1234.6, "y": 123456789, "z": [2e-9]}


def test_a_name_with_a_slash_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a/b"):
        write_table(tmp_path / "table.json", {}, [{"us": {"a/b": 1}}])


def test_configs_read_back_with_their_parameters(tmp_path: Path) -> None:
    groups = {
        "rows": {"held_out": False, "rows": [{"config": {"vec": 8, "loads": 2}, "us": [1.5, None]}]},
        "products": {"rows": [{"config": {"raster": "m"}, "us": [3]}, {"config": {"raster": "n"}, "us": [4]}]},
    }
    write_configs(tmp_path / "configs.json", {"device": "a card"}, groups)
    found = read_configs(tmp_path / "configs.json")
    assert found["rows"] == {**groups["rows"], "parameters": ["vec", "loads"]}
    assert found["products"]["rows"] == groups["products"]["rows"]
    assert json.loads((tmp_path / "configs.json").read_text())["rows"][0] == ["rows", [8, 2], [1.5, None]]
