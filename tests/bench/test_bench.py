"""The benchmark without a GPU: its cases, what it prepares, and what it makes of times."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
import torch

from cutegen_lab.bench.case import Case
from cutegen_lab.bench.measure import measure
from cutegen_lab.bench.memory_bound import ITEMSIZE, SIZES, WORKS
from cutegen_lab.bench.prepare import prepare
from cutegen_lab.bench.prepared import Prepared
from cutegen_lab.bench.record import Record, Row, read
from cutegen_lab.bench.report import line, summary
from cutegen_lab.bench.suite import CASES
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda import gpu_count
from cutegen_lab.judge.timing.interleaved import Effort
from cutegen_lab.templates.recognise import template_for
from tests.cli.command import cutegen, only_object
from tests.judge.fake_stopwatch import FakeStopwatch
from tests.tuning.test_tuner import build

CASE = Case("double", "f32-64x32", "x * 2", "x: f32[64,32]")
EFFORT = Effort(half_width=0.01, seconds=0.2, min_rounds=4, warm_up_seconds=0.0)
TRUE_US = {"c0": 10.0, "c1": 9.0, "quack": 11.0, "eager": 20.0, "compile": 15.0, "copy": 9.8}


def watch(kernel: object = None, **options: object) -> FakeStopwatch:
    return FakeStopwatch(kernel or (lambda inputs: [inputs[0] * 2]), TRUE_US, **options)  # type: ignore[arg-type]


def measured(device: FakeStopwatch) -> Row:
    some = build(CASE.problem.workload)
    prepared = Prepared(CASE.name, "elementwise chain", [{"vec": 4}, {"vec": 8}], [some, some], some)
    return measure(device, CASE, prepared, threading.Event(), EFFORT)  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_work_has_eight_shapes_of_the_size_it_says() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    memory = [case for case in CASES if case.work in {work.name for work in WORKS}]
    assert len(memory) == len(WORKS) * len(ITEMSIZE) * len(SIZES)
    for number, case in enumerate(memory):
        size = SIZES[number % len(SIZES)][0]
        assert case.problem.workload.compulsory_bytes == pytest.approx(size, rel=0.05), case.name


@pytest.mark.parametrize("work", list(dict.fromkeys(case.work for case in CASES)))
def test_a_template_serves(work: str) -> None:
    case = next(case for case in CASES if case.work == work)
    try:
        assert template_for(case.problem, "sm_90a").name
    except ProviderError as error:
        pytest.fail(f"{case.name}: {error}")


@pytest.mark.kernel
def test_prepared_and_read_again(tmp_path: Path) -> None:
    said: list[str] = []
    with CageCompiler(tmp_path / "cache") as compiler:
        prepare([CASE], tmp_path / "out", compiler, "sm_90a", 2, said.append)
        prepare([CASE], tmp_path / "out", compiler, "sm_90a", 2, said.append)
    assert said == ["1/1 double-f32-64x32: 2 configs of elementwise chain"], "the second time there is nothing to do"
    found = Prepared.load(tmp_path / "out", CASE)
    assert len(found.configs) == len(found.builds) == 2 and found.configs[0] != found.configs[1]
    assert all(b.plan.launches for b in found.builds)


def test_medians_and_checks() -> None:
    row = measured(watch())
    assert row.times_us == pytest.approx(TRUE_US, rel=0.01) and row.rounds >= 6
    assert {name: found[0] for name, found in row.ratios.items()} == pytest.approx(
        {name: us / TRUE_US["c0"] for name, us in TRUE_US.items() if name != "c0"}, rel=0.01
    )
    assert all(low <= ratio <= high for ratio, low, high in row.ratios.values())
    assert row.checked == ["c0", "c1", "quack"] and not row.faults
    assert row.errors == {"c0": 0.0, "c1": 0.0, "quack": 0.0, "eager": 0.0}
    assert "10.0 µs" in line(row) and "another config: 0.900" in line(row)


def test_a_wrong_result_is_told_and_not_timed() -> None:
    row = measured(watch(lambda inputs: [torch.zeros_like(inputs[0])]))
    assert set(row.times_us) == {"eager", "compile", "copy"}
    assert "against float64" in row.faults["c0"] and row.errors["c0"] == 1.0


def test_a_build_that_breaks_the_device_leaves_the_others() -> None:
    broken = {"c1": Fault(Verdict.DEVICE_ERROR, "illegal address")}
    row = measured(watch(faults=broken))
    assert "illegal address" in row.faults["c1"] and "c0" in row.times_us and "c1" not in row.times_us


def test_the_summary_says_who_is_faster_where() -> None:
    large = Row("a", "softmax", 1 << 29, times_us={"c0": 100.0}, ratios={"copy": [0.97], "compile": [0.9]})
    small = Row("b", "softmax", 1 << 20, times_us={"c0": 10.0}, ratios={"copy": [0.5], "compile": [4.0]})
    (said,) = summary([large, small, Row("c", "softmax", 1 << 20, faults={"c0": "not served"})])
    assert "2 of 3 timed; 0.970 to 0.970 of the copy rate from 256 MB up" in said
    assert "compile 1.90x (least 0.90, a)" in said


def test_problems_whose_answer_hardly_depends_on_an_input_are_in_no_mean() -> None:
    whole = Row("a", "softmax", 1 << 20, times_us={"c0": 100.0}, ratios={"compile": [1.5]})
    flat = Row("b", "softmax", 1 << 20, times_us={"c0": 1.0}, ratios={"compile": [90.0]}, insensitive=["x"])
    (said,) = summary([whole, flat])
    assert "2 of 2 timed; 1 not in the means" in said and "compile 1.50x" in said
    assert "hardly depends on x: left out of means" in line(flat)


def test_the_summary_compares_errors_of_products() -> None:
    rows = [Row(name, "gemm_f32", 1, 2.0, times_us={"c0": 1.0}, errors={"c0": error, "eager": 4e-7})
            for name, error in (("a", 1e-7), ("b", 3e-7))]  # fmt: skip
    exact = Row("c", "gemm_f32", 1, 2.0, times_us={"c0": 1.0}, errors={"c0": 0.0, "eager": 0.0})
    (said,) = summary([*rows, exact])
    assert "error 0.25 to 0.75 of eager's" in said


def test_rows_survive(tmp_path: Path) -> None:
    row, path = measured(watch()), tmp_path / "out.json"
    Record({"device": "a card"}, path).add(row)
    assert read(path) == [row] and row.name in Record({}, path, read(path))
    assert json.loads(path.read_text())["device"] == "a card"
    shown = cutegen(tmp_path, "bench", "h200", "--show", str(path))
    assert shown.returncode == 0 and "1 of 1 timed" in shown.stdout
    told = only_object(cutegen(tmp_path, "bench", "h200", "--show", str(path), "--json"))
    assert [given["name"] for given in told["rows"]] == [row.name]
    path.write_text("[]")
    assert cutegen(tmp_path, "bench", "h200", "--show", str(path)).returncode == 2


def test_commands(tmp_path: Path) -> None:
    listed = only_object(cutegen(tmp_path, "bench", "h200", "--only", "softmax-bf16", "--list", "--json"))
    assert len(listed["cases"]) == 8 * 2
    unknown = cutegen(tmp_path, "bench", "h200", "--only", "nothing-like-it", "--list")
    assert unknown.returncode == 2 and "column_sum" in unknown.stderr
    for options, says in (
        (("--prepare", "a", "--prepared", "b"), "--prepare compiles only, and --prepared times only"),
        (("--resume",), "--out is missing. Add --out FILE.json."),
        (
            ("--show", "gone.json"),
            "cannot read gone.json: No such file or directory. `cutegen bench GPU --out FILE.json` writes",
        ),
        *(
            []
            if gpu_count()
            else [((), "no CUDA device is visible, and only measured times are reported. Use --prepare")]
        ),
    ):
        refused = cutegen(tmp_path, "bench", "h200", *options)
        assert refused.returncode == 2 and says in refused.stderr and refused.stderr.count("\n") == 1
    lacking = cutegen(tmp_path, "bench", "h200", "--only", "gelu", "--prepared", str(tmp_path))
    assert lacking.returncode == 2 and "--prepare" in lacking.stderr
