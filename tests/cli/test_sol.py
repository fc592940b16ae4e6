"""``cutegen sol``: bounds and reachable times as text and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.roofline import GPUS
from tests.cli.command import cutegen, only_object

GELU = """import torch.nn.functional as F
def reference(x, w):  # x: f32[1024,1024], w: f32[1024,1024]; x: f32[2048,1024], w: f32[1024,1024]
    return F.gelu(x @ w)
"""
EMBEDDING = """import torch.nn.functional as F
def reference(i, w):  # i: i64[4096] below w[0], w: bf16[128256,4096]
    return F.embedding(i, w)
"""
FLOPS, MATRIX = 2 * 1024**3, 4 * 1024**2


@pytest.fixture
def problems(place: Path) -> Path:
    (place / "gelu.py").write_text(GELU)
    (place / "embedding.py").write_text(EMBEDDING)
    return place


def test_a_product_has_a_floor_its_unfused_operators_and_a_row_for_each_precision(problems: Path) -> None:
    shown = cutegen(problems, "sol", "gelu.py").stdout
    first = shown.split("gelu w2: ")[0].splitlines()
    assert first[0].startswith("gelu main: (x: f32[1024,1024]")
    assert "  compulsory traffic  12,582,912 B" in first
    assert "  speed of light      6.51 µs on H200, set by compute" in first
    assert "  reachable floor     8.51 µs in one kernel, set by compute" in first
    unfused = "2 operators of eager PyTorch, 20,971,520 B: bound 8.26 µs, floor 12.5 µs, set by compute"
    assert f"  unfused             {unfused}" in first
    rows = [" ".join(line.split()) for line in first if "FLOP/s" in line]
    assert len(rows) == 4 and rows[0] == "as given f32 330 TFLOP/s 6.51 µs 6.51 µs 8.51 µs 12.5 µs"
    assert f"  matrix FLOPs        {2 * FLOPS:,}" in shown, "of the second workload too"


def test_json_has_everything_with_units(problems: Path) -> None:
    data = only_object(cutegen(problems, "sol", "gelu.py", "--json"))
    assert (data["compulsory_bytes"], data["flops"], data["limiter"]) == (3 * MATRIX, FLOPS, "compute")
    assert data["time_us"] == data["fused"]["bound_us"]
    assert data["unfused_bytes"] == 5 * MATRIX
    assert [(o["name"], o["bytes_read"], o["count"]) for o in data["operators"]] == [
        ("aten.mm", 2 * MATRIX, 1), ("aten.gelu", MATRIX, 1),
    ]  # fmt: skip
    assert [row["name"] for row in data["precisions"]] == ["f32", "tf32", "bf16, f16", "f8"]
    assert [row["change"] for row in data["precisions"]][:2] == ["as given", "if rounded to"]
    assert data["input_bytes_read"] == {"x": MATRIX, "w": MATRIX}
    assert [w["workload"] for w in data["workloads"]] == ["main", "w2"]
    assert data["gpus"][0]["gpu"] == data["gpu"] == "H200"


def test_a_table_of_all_gpus(problems: Path) -> None:
    shown = cutegen(problems, "sol", "gelu.py", "--gpu", "all").stdout
    table = [line.split() for line in shown.split("gelu w2: ")[0].splitlines() if line.split()[0] in ("GPU", *GPUS)]
    assert [row[0] for row in table] == ["GPU", *GPUS]
    assert " ".join(table[3]).startswith("A100 2.04 TB/s 1.76 TB/s 20.6 µs compute 22.6 µs compute 29.4 µs compute")
    assert " ".join(table[1]).endswith("measured 2026-11-20, bf16 32768×8192")
    data = only_object(cutegen(problems, "sol", "gelu.py", "--gpu", "ALL", "--json"))
    assert [each["gpu"] for each in data["gpus"]] == [*GPUS]
    assert data["gpus"][2]["unfused"]["floor_us"] == pytest.approx(29.4, abs=0.05)


def test_an_embedding_reads_the_rows_that_indices_choose(problems: Path) -> None:
    shown = cutegen(problems, "sol", "embedding.py").stdout
    # 4096 indices below 128256 choose 4031.3 ± 7.9 different rows: at least 4007
    nbytes = 4096 * 8 + 4007 * 2 * 4096 + 4096 * 2 * 4096
    assert f"  compulsory traffic  {nbytes:,} B\n  matrix FLOPs" in shown
    data = only_object(cutegen(problems, "sol", "embedding.py", "--json"))
    assert data["compulsory_bytes"] == nbytes and data["input_bytes_read"]["w"] == 4007 * 2 * 4096


def test_help_says_what_the_numbers_are(place: Path) -> None:
    told = " ".join(cutegen(place, "sol", "--help").stdout.split())
    assert "the rows that indices surely choose" in told and "all: a table of them" in told
