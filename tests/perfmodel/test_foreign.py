"""Kernels of another hand beside a GPU: ncu's limiter, waits for clusters, and what the comparison makes of both."""

from __future__ import annotations

import json
import tarfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.harness import RESULTS
from benchmarks.perfmodel import foreign_on_gpu
from benchmarks.perfmodel.cluster_waits import programs, slope_us
from benchmarks.perfmodel.counters_cases import store
from benchmarks.perfmodel.foreign_cases import FOREIGN, KERNELS, Foreign, blind
from benchmarks.perfmodel.ncu_limiter import METRICS, STALLS, UNITS, Seen, agrees, has_word, seen
from benchmarks.perfmodel.prediction_order import count
from benchmarks.perfmodel.strided_accesses import ACCESSES, ROUNDS, Access, cycles, program
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.trial import Profile, Timing
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Result, run_plan
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.timing.interleaved import Effort
from tests.cli.command import cutegen
from tests.harness.checking import Compiler, built, outputs

H200 = GPUS["H200"]


def metrics(stall: str = "wait", **percent: float) -> dict[str, float]:
    found = {f"{UNITS[unit][0]}.avg.pct_of_peak_sustained_elapsed": value for unit, value in percent.items()}
    stalls = {f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio": 5.0}
    return found | stalls | {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": 9.0}


LIMITED = [
    ("memory bandwidth, 48 µs", metrics("long_scoreboard", DRAM=88.0, L2=40.0), True),
    ("memory latency: too few loads in flight, 3 of 4 µs", metrics("long_scoreboard", DRAM=88.0), False),
    ("memory latency: too few loads in flight, 3 of 4 µs", metrics("long_scoreboard", DRAM=70.0), True),
    ("at the floor: memory 16 µs + launch 2 µs", metrics("long_scoreboard", DRAM=70.0), True),
    ("memory bandwidth, 48 µs", metrics("long_scoreboard", DRAM=50.0), False),
    ("memory latency: a block's loads arrive while nothing else runs, 1 of 2 µs", metrics("long_scoreboard"), True),
    ("tensor cores, 18 µs", metrics("long_scoreboard", tensor=85.0, instructions=86.0), True),
    ("memory latency: too few loads in flight, 3 of 4 µs", metrics("gmma", tensor=65.0), False),
    ("instruction issue, 9 µs", metrics("not_selected", instructions=90.0, tensor=10.0), True),
    ("integer units, 9 µs", metrics(instructions=90.0), True),
    ("barriers, 2 of 3 µs that blocks take", metrics("barrier", DRAM=30.0), True),
    ("barriers, 2 of 3 µs that blocks take", metrics("long_scoreboard", DRAM=30.0), False),
    ("dependent instructions, 2 of 3 µs", metrics("wait"), True),
    ("tail: the last wave of blocks is nearly empty; barriers, 2 of 3 µs", metrics("barrier"), True),
]


@pytest.mark.parametrize(("limiter", "values", "right"), LIMITED)
def test_a_limiter_is_right_where_ncu_says_the_same(limiter: str, values: dict[str, float], right: bool) -> None:
    assert agrees(limiter, seen(values)) is right


def test_ncu_has_no_word_for_the_handing_out_of_blocks() -> None:
    """Blocks that cannot be started faster; where a unit is busy all the same, ncu's word for it stands."""
    starts = "block starts: too many small blocks for the launch hardware, 159 µs"
    waiting, busy = (seen(metrics("long_scoreboard", L1=percent)) for percent in (27.0, 61.0))
    assert not agrees(starts, waiting) and not has_word(starts, waiting) and has_word(starts, busy)
    assert has_word("block starts: each block does little, 3 of 4 µs", waiting) and has_word("L1", waiting)


def test_a_warp_that_issues_is_not_stalled() -> None:
    assert seen(metrics("barrier", DRAM=10.0)) == Seen("DRAM", 10.0, "barrier", 1.0)
    assert seen({}).answers == frozenset()
    assert len(METRICS) == len(set(METRICS)) > len(STALLS) + len(UNITS)


def counted(workload: Workload, build: Build) -> Result:
    data = [np.zeros(spec.shape, np.uint8 if spec.nbytes == 16 else np.int32) for spec in workload.tensors]
    views = [memoryview(each.reshape(-1).view(np.uint8)) for each in data]
    ran = run_plan(build, workload.tensors, views, threading.Event())
    assert ran.execution.fault is None, ran.execution.fault
    return ran


@pytest.mark.parametrize(("name", "counter", "each"), [
    ("cluster-barrier-4-8", "cluster_waits", 64 * 8), ("cluster-exchange-8-8", "bulk_phases", 64),
])  # fmt: skip
def test_a_program_waits_as_often_as_its_name_says_and_races_with_nobody(name: str, counter: str, each: int) -> None:
    (_, _, workload, build) = next(found for found in programs() if found[1] == name)
    (launch,) = counted(workload, build).per_launch
    once = {"cluster_waits": 1, "bulk_phases": 0}[counter]  # the one at the end
    assert launch[counter] == each * (8 + once)


@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: access.group)
def test_a_strided_access_touches_as_many_lines_as_it_should_and_races_with_nobody(access: Access) -> None:
    (launch,) = counted(*program(access, 4)).per_launch
    lines = max(access.stride * 32 // 128, 1)
    requests, touched = (launch[f"global_{access.kind}_{unit}"] for unit in ("requests", "lines"))
    once = access.kind == "store"  # the one at the end
    assert requests == 4 * 32 * 132 + once and touched == 4 * 32 * 132 * lines + once


def test_cycles_of_an_access_are_the_slope_by_warps(tmp_path: Path) -> None:
    times = {f"strided-load-16-64-{rounds}": 3 + rounds * 32 * 8 / 1.98e3 for rounds in ROUNDS}
    out = tmp_path / "out.json"
    out.write_text(json.dumps({"device": "cuda:0 NVIDIA H200", "times_us": {"strided-load-16-64": times}}))
    assert cycles(out) == {"strided-load-16-64": pytest.approx(8.0)}


def test_the_slope_is_one_wait() -> None:
    assert slope_us({8: 5.4, 40: 15.0, 136: 43.8}) == pytest.approx(0.3)


def test_what_was_measured_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: its clock and ncu are played. ``measure`` keeps both, ``compare`` reads them."""
    folder, archive, out, result = (tmp_path / name for name in ("cases", "cases.tar.xz", "out.json", "result.json"))
    folder.mkdir()
    some = [found for found in programs() if found[0] == "cluster-barrier-2"]
    for group, name, workload, build in some:
        waits = {"waits": int(name.rpartition("-")[2])}
        store(folder, f"p0-{name}", "p0", workload, waits, build, counted=True, timed=True)
        store(folder, name, group, workload, {}, build, counted=False, timed=True)
    with tarfile.open(archive, "w:xz") as packed:
        for path in folder.glob("*.json"):
            packed.add(path, path.name)

    def time(folder: Path, out: Path, effort: Effort) -> None:
        head = dict.fromkeys(("date", "python", "torch", "driver"), "") | {"device": "NVIDIA H200"}
        times = {f"cluster-barrier-2-{n}": 2 + 0.25 * n for n in (8, 40, 136)}
        groups = {"p0": {f"p0-{name}": t for name, t in times.items()}, "cluster-barrier-2": times}
        assert len(list(folder.glob("*.json"))) == 6
        out.write_text(json.dumps(head | {"times_us": groups}))

    asked = []

    def profiled(path: str, folder: Path, names: list[str], sections: tuple[str, ...], limit_s: float):  # type: ignore[no-untyped-def]
        asked.append(sections)
        profiles = {path.stem: [metrics("barrier")] for path in folder.glob("*.json")}
        return 0, profiles if not sections else {}  # this ncu does not know the sections

    monkeypatch.setattr(foreign_on_gpu, "A_PART", 2)
    monkeypatch.setattr(foreign_on_gpu, "time", time)
    monkeypatch.setattr(foreign_on_gpu, "profiled", profiled)
    monkeypatch.setattr(foreign_on_gpu, "available", lambda path: {m.rpartition(".")[0] for m in METRICS})
    monkeypatch.setattr(foreign_on_gpu.ncu, "find", lambda: "ncu")
    foreign_on_gpu.measure(archive, out)
    assert asked == [foreign_on_gpu.SECTIONS, (), ()]  # and is not asked for them again
    foreign_on_gpu.compare(archive, out, result)
    told = json.loads(result.read_text())
    assert told["cluster_waits_us"] == {"cluster-barrier-2": pytest.approx(0.25)}
    assert told["groups"]["p0"]["spearman"] == 1.0 and told["of"] == 3
    assert told["groups"]["p0"]["rows"][-1]["limiter"].startswith("cluster waits") and told["limiters_as_ncu"] == 1.0
    assert told["groups"]["p0"]["pairs_in_order"] == "3 of 3" and told["halves"]["reported"]["of"] == 3
    assert told["limiters_as_ncu_where_it_has_a_word"] == 1.0 and told["of_those"] == 3
    foreign_on_gpu.again(archive, result)
    assert json.loads(result.read_text()) == told
    counts = tmp_path / "counts"
    count(folder, counts)
    foreign_on_gpu.again(archive, result, counts)
    assert json.loads(result.read_text()) == told


EXPECTED = {  # of each one's default config, written down before a profiler saw them; four by what it saw then
    "p1_gelu_sigmoid": ("at the floor", "memory bandwidth"),
    "p2_softmax": ("at the floor", "memory bandwidth"),
    "p3_rmsnorm": ("memory latency, at the floor",),  # DRAM at 57% of its peak: a third is left in L2
    "p4_colsum": ("at the floor",),  # 128 blocks, one wave: 17.9 µs, where a copy of its bytes would take 18.2
    "p5_masked_cumsum": ("memory latency",),  # DRAM at 42% of its peak: what it stores is in L2 when it ends
    "p6_gemm_mma": ("tensor cores", "instruction issue of few warps"),  # mma.sync at 308 TFLOP/s, tensor cores at 49%
    "p7_gemm_wgmma": ("tensor cores",),  # 641 TFLOP/s
    "p8_ln_bwd": ("at the floor", "memory bandwidth"),
}
MEASURED_US = {  # on an H200: benchmarks/results/foreign_on_gpu.json
    name: group["rows"][0]["measured_us"]
    for name, group in json.loads((RESULTS / "foreign_on_gpu.json").read_text())["groups"].items()
}


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda foreign: foreign.name)
def test_the_limiter_of_a_kernel_of_another_hand(foreign: Foreign, compiler: Compiler) -> None:
    workload = foreign.problem.workload
    artifact = built(compiler, foreign.source, [workload], config=foreign.configs[0])
    build = artifact.builds[workload.name]
    timing, profile = EmulatorDevice().time(build, workload.tensors, buffers(workload), H200, threading.Event())
    assert isinstance(timing, Timing) and isinstance(profile, Profile), timing
    assert profile.limiter.startswith(EXPECTED[foreign.name]), profile.limiter
    assert MEASURED_US[foreign.name] / 1.3 <= timing.time_us <= 1.3 * MEASURED_US[foreign.name]


STAGED = next(foreign for foreign in FOREIGN if foreign.name == "p7_gemm_wgmma")


@pytest.mark.parametrize("config", STAGED.configs, ids=str)
def test_a_product_by_bulk_copies_never_lacks_loads_in_flight(config: Config, compiler: Compiler) -> None:
    """Two stages wait for bulk copies, and are told so; with more, the tensor cores or L2 set the time."""
    workload = STAGED.problem.workload
    build = built(compiler, STAGED.source, [workload], config=config).builds[workload.name]
    _, profile = EmulatorDevice().time(build, workload.tensors, buffers(workload), H200, threading.Event())
    few = config["stages"] == 2  # six narrow ones: ncu has L2 at 68%
    assert profile is not None
    assert profile.limiter.startswith(("bulk copies",) if few else ("tensor cores", "L2 bandwidth"))
    assert not any("in flight" in text for text in profile.findings)


def buffers(workload: Workload) -> list[memoryview]:
    return [memoryview(bytearray(spec.nbytes)) for spec in workload.tensors]


SMALL = {
    "p1_gelu_sigmoid": "x: bf16[8,512], gate: bf16[8,512]", "p2_softmax": "x: bf16[3,4096]",
    "p3_rmsnorm": "x: f32[3,2048], w: f32[2048]", "p4_colsum": "x: f32[1024,64]",
    "p5_masked_cumsum": "x: f32[3,1024], mask: bool[3,1024]", "p6_gemm_mma": "a: bf16[128,256], b: bf16[256,128]",
    "p7_gemm_wgmma": "a: bf16[128,384], b: bf16[384,256]",
    "p8_ln_bwd": "dy: bf16[3,4096], x: bf16[3,4096], w: bf16[4096], mean: f32[3], rstd: f32[3]",
}  # fmt: skip


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda foreign: foreign.name)
def test_a_kernel_of_another_hand_is_right_and_has_no_race(foreign: Foreign, compiler: Compiler) -> None:
    problem = replace(foreign, inputs=SMALL[foreign.name]).problem
    artifact = built(compiler, foreign.source, [problem.workload], config=foreign.configs[0])
    inputs = draw(problem.workload, "normal", 3)
    (got,) = outputs(problem, artifact, inputs)
    namespace: dict[str, Any] = {}
    exec(problem.source, {"torch": torch, "F": torch.nn.functional}, namespace)  # noqa: S102 - this test's own
    expected = namespace["reference"](*(t.double() if t.is_floating_point() else t for t in inputs)).double()
    assert float((got.double() - expected).norm() / expected.norm()) < 5e-3


BLIND = sorted((KERNELS / "blind").glob("*.json"))
QUICK = ("q9_rotary",)  # to judge; the others take up to eight minutes each


def test_configs_of_kernels_written_blind_are_complete() -> None:
    cases = list(blind())
    assert {case.group for case in cases} == {path.stem for path in BLIND} and len(cases) == 54
    assert all(spec.below > 0 for case in cases for spec in case.workload.inputs if spec.rule)


@pytest.mark.kernel
@pytest.mark.timeout(3600)
def test_kernels_written_blind_pass(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """By the judge, at their own sizes."""
    for path in BLIND:
        if path.stem in QUICK or request.config.getoption("--exhaustive"):
            (tmp_path / "problem.py").write_text(json.loads(path.read_text())["problem"])
            (tmp_path / "kernel.py").write_text(path.with_suffix(".py.txt").read_text())
            done = cutegen(tmp_path, "judge", "problem.py", "kernel.py")
            assert done.returncode == 0, f"{path.stem}: {done.stdout}{done.stderr}"
