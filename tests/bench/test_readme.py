"""The tables of docs/measured.md are what the record says."""

from __future__ import annotations

import pytest

from benchmarks.readme import MEASURED, RECORD, TABLES, written
from cutegen_lab.bench.record import Row, read


def test_tables_are_those_of_the_record() -> None:
    text = MEASURED.read_text(encoding="utf-8")
    assert all(f"<!-- bench: {name} -->" in text for name in TABLES)
    assert written(text, read(RECORD)) == text, "python -m benchmarks.readme writes them anew"


def test_a_table_says_what_rows_say() -> None:
    times = {"c0": 100.0, "eager": 150.0, "compile": 120.0}
    row = Row("swiglu-llama_3_8b-4096x14336x4096", "swiglu", 1, 2.0, times_us=times, ratios={"eager": [1.5]})
    with pytest.raises(KeyError):
        written("<!-- bench: nothing -->\n<!-- end -->", [])
    cubes = [
        Row(f"gemm-{n}x{n}x{n}", "gemm", 1, 2.0, times_us=times, ratios={"eager": [of]})
        for n, of in ((512, 3.0), (1024, 1.5))
    ]
    said = written("<!-- bench: gemm -->\n| old |\n<!-- end -->\n", cubes)
    assert "| 512³ | 150 µs | 3.00 | 1024³ | 150 µs | 1.50 |" in said and "old" not in said
    assert "2.12 (1.50 to 3.00)" in written("<!-- bench: products -->\n<!-- end -->", [*cubes, row])
