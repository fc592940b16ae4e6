"""The emulator as a device: real compiled kernels, executed and timed."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import count

import pytest
import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.hot_lines import hottest
from cutegen_lab.core.predicted import COPY, terms_us
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.protocols import Execution
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import Profiled
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options, Order, Result
from cutegen_lab.perfmodel import error_band
from cutegen_lab.stores.codec import event_from_json, event_to_json
from tests.harness.checking import Compiler, built

SOFTMAX = '''
import math, operator
import cutlass, cutlass.cute as cute
import cuda.bindings.driver as cuda
from cutlass import Float32

@cute.kernel
def softmax_kernel(gX: cute.Tensor, gO: cute.Tensor, T: cutlass.Constexpr, N: cutlass.Constexpr,
                   missing: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    red = smem.allocate_tensor(Float32, cute.make_layout((T // 32, 2)), byte_alignment=16)
    layout = cute.make_layout((8, T, N // 8 // T), stride=(1, 8, 8 * T))
    row = cute.make_tensor((gX[bidx, None]).iterator, layout)
    out = cute.make_tensor((gO[bidx, None]).iterator, layout)
    tX = row[None, tidx, None]
    tO = out[None, tidx, None]
    r = cute.make_rmem_tensor_like(tX)
    cute.autovec_copy(tX, r)
    x = r.load().to(Float32)
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    m = cute.arch.warp_reduction(x.reduce(cute.ReductionOp.MAX, -Float32.inf, 0), cute.arch.fmax)
    if lane == 0:
        if warp >= missing:
            red[warp, 0] = m
    cute.arch.barrier()
    v = -Float32.inf
    if lane < T // 32:
        v = red[lane, 0]
    m = cute.arch.warp_reduction(v, cute.arch.fmax)
    e = cute.math.exp2((x - m) * math.log2(math.e), fastmath=True)
    s = cute.arch.warp_reduction(e.reduce(cute.ReductionOp.ADD, Float32(0.0), 0), operator.add)
    if lane == 0:
        red[warp, 1] = s
    cute.arch.barrier()
    u = Float32(0.0)
    if lane < T // 32:
        u = red[lane, 1]
    s = cute.arch.warp_reduction(u, operator.add)
    ro = cute.make_rmem_tensor_like(tO)
    ro.store((e / s).to(cutlass.BFloat16))
    cute.autovec_copy(ro, tO)

@cute.jit
def launch(x: cute.Tensor, o: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 128,
           missing: cutlass.Constexpr = 0, extra: cutlass.Constexpr = 0):
    softmax_kernel(x, o, threads, x.shape[1], missing).launch(
        grid=[x.shape[0] + extra, 1, 1], block=[threads, 1, 1], stream=stream)
'''  # fmt: skip
ROWS, COLUMNS = 48, 2048


def compiled(compiler: Compiler, source: str = SOFTMAX, **config: int) -> tuple[Build, tuple[TensorSpec, ...]]:
    x, o = (TensorSpec.parse(f"{n}: bf16[{ROWS},{COLUMNS}]") for n in "xo")
    return built(compiler, source, [Workload("main", (x,), (o,))], config=config).builds["main"], (x, o)


def views(*tensors: torch.Tensor) -> list[memoryview]:
    return [memoryview(t.view(torch.uint8).reshape(-1).numpy()) for t in tensors]


def source_line(words: str) -> int:
    return next(n for n, line in enumerate(SOFTMAX.split("\n"), 1) if words in line)


@pytest.mark.parametrize("threads", [64, 256])
def test_a_compiled_softmax_is_right(compiler: Compiler, threads: int) -> None:
    build, specs = compiled(compiler, threads=threads)
    torch.manual_seed(0)
    x = (torch.randn(ROWS, COLUMNS) * 3).bfloat16()
    o = torch.full_like(x, float("nan"))
    before = x.clone()
    execution = EmulatorDevice().execute(build, specs, views(x, o), threading.Event())
    assert execution.fault is None, execution.fault
    want = torch.softmax(x.double(), -1)
    own = torch.softmax(x, -1).double()
    error, torch_error = ((v - want).norm() / want.norm() for v in (o.double(), own))
    assert error <= 1.05 * torch_error and torch.equal(x, before)
    assert execution.counters["global_load_sectors"] == ROWS * COLUMNS * 2 / 32
    assert execution.launched[0][1] == (ROWS, 1, 1)


def test_a_row_too_many_is_out_of_bounds_with_its_source_line(compiler: Compiler) -> None:
    build, specs = compiled(compiler, extra=1)
    x = torch.zeros(ROWS, COLUMNS).bfloat16()
    fault = EmulatorDevice().execute(build, specs, views(x, x.clone()), threading.Event()).fault
    assert fault is not None and fault.verdict is Verdict.OUT_OF_BOUNDS
    assert fault.line == source_line("autovec_copy(tX, r)") and fault.block == (ROWS, 0, 0)


def test_a_warp_that_forgets_its_partial_result(compiler: Compiler) -> None:
    build, specs = compiled(compiler, missing=1)
    x = torch.zeros(ROWS, COLUMNS).bfloat16()
    fault = EmulatorDevice().execute(build, specs, views(x, x.clone()), threading.Event()).fault
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ
    assert fault.line == source_line("v = red[lane, 0]")


@pytest.mark.parametrize(
    ("after", "reads", "writes"),
    [
        ("red[warp, 0] = m", "v = red[lane, 0]", "red[warp, 0] = m"),
        ("red[warp, 1] = s", "u = red[lane, 1]", "red[warp, 1] = s"),
    ],
)
def test_a_missing_barrier_is_a_race(compiler: Compiler, after: str, reads: str, writes: str) -> None:
    barrier = "    cute.arch.barrier()\n"
    at = SOFTMAX.index(barrier, SOFTMAX.index(after))
    build, specs = compiled(compiler, SOFTMAX[:at] + "    pass\n" + SOFTMAX[at + len(barrier) :])
    x = torch.randn(ROWS, COLUMNS).bfloat16()
    fault = EmulatorDevice().execute(build, specs, views(x, x.clone()), threading.Event()).fault
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and "no barrier between" in fault.message
    assert fault.line == source_line(reads) and f"(line {source_line(writes)}, " in fault.message
    assert fault.block == (0, 0, 0) and fault.thread is not None


def test_time_is_a_labelled_prediction(compiler: Compiler) -> None:
    build, specs = compiled(compiler)
    x = torch.zeros(ROWS, COLUMNS).bfloat16()
    timing, profile = EmulatorDevice().time(build, specs, views(x, x.clone()), GPUS["H200"], threading.Event())
    assert isinstance(timing, Timing) and timing.kind == "predicted" and timing.device == "H200"
    assert "every block" in timing.method or "sample" in timing.method
    assert profile is not None and profile.source == "emulator" and profile.limiter == "launch overhead, 2 µs"
    assert any("48 blocks leave 84 of 132" in text for text in profile.findings)
    assert timing.band_us == error_band(timing.time_us, profile.limiter, GPUS["H200"])


def test_a_profile_says_what_each_line_costs(compiler: Compiler) -> None:
    build, specs = compiled(compiler)
    x = torch.zeros(ROWS, COLUMNS).bfloat16()
    _, profile = EmulatorDevice().time(build, specs, views(x, x.clone()), GPUS["H200"], threading.Event())
    assert profile is not None and profile.counters["compulsory_bytes"] == 2 * x.nbytes
    gathered = (replace(specs[0], least_bytes=128), *specs[1:])
    _, fewer = EmulatorDevice().time(build, gathered, views(x, x.clone()), GPUS["H200"], threading.Event())
    assert fewer is not None and fewer.counters["compulsory_bytes"] == 128 + x.nbytes
    copy_us = (128 + x.nbytes) / GPUS["H200"].copy_bytes_per_s * 1e6
    assert terms_us(fewer)[COPY] == pytest.approx(copy_us)
    by_line = {entry.line: entry.counters for entry in profile.lines}
    for name in (
        "warp_instructions", "global_load_sectors", "moved_bytes", "shared_wavefronts", "barrier_waits",
        "predicted_waits_us",
    ):  # fmt: skip
        assert sum(c.get(name, 0) for c in by_line.values()) == pytest.approx(profile.counters[name]), name
    load = by_line[source_line("autovec_copy(tX, r)")]
    assert load["predicted_waits_us"] == max(
        c.get("predicted_waits_us", 0.0) for c in by_line.values()
    )  # the latency of DRAM
    assert load["global_load_sectors"] == x.nbytes / 32 and "global_store_sectors" not in load
    first = hottest(profile)[0]
    assert first.share == "50% of global sectors"
    assert first.cost == "loads issued or first used here: 16.0 sectors per request, ideal 16"


COLUMN = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def transpose(mX: cute.Tensor, mY: cute.Tensor):
    lane, row, _ = cute.arch.thread_idx()
    layout = cute.make_layout((32, 32), stride=(32, 1))
    tile = cutlass.utils.SmemAllocator().allocate_tensor(mX.element_type, layout, 128)
    tile[row, lane] = mX[row, lane]
    cute.arch.sync_threads()
    mY[row, lane] = tile[lane, row]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    transpose(x, y).launch(grid=[1, 1, 1], block=[32, 32, 1], stream=stream)
"""


def test_a_profile_keeps_an_access_with_bank_conflicts(compiler: Compiler) -> None:
    """A column of a dense tile: 31 conflicts for each of 32 warps; none on a profile without conflicts."""
    specs = tuple(TensorSpec.parse(f"{name}: f32[32,32]") for name in "xy")
    build = built(compiler, COLUMN, [Workload("main", specs[:1], specs[1:])]).builds["main"]
    x, y = torch.rand(32, 32), torch.zeros(32, 32)
    _, profile = EmulatorDevice().time(build, specs, views(x, y), GPUS["H200"], threading.Event())
    assert profile is not None and torch.equal(y, x.T)
    (kept,) = profile.accesses
    assert COLUMN.split("\n")[kept.line - 1].endswith("tile[lane, row]")
    assert (kept.way, kept.width, kept.wavefronts, kept.ideal, kept.conflicts) == ("load", 4, 32, 1, 31 * 32)
    assert kept.offsets == tuple(range(0, 4096, 128))
    event = Profiled("c1", profile)
    assert event_from_json(event_to_json(event)) == event


def test_another_arch_is_refused_by_name(compiler: Compiler) -> None:
    build, specs = compiled(compiler)
    x = torch.zeros(ROWS, COLUMNS).bfloat16()
    fault = EmulatorDevice().execute(replace(build, arch="sm_100a"), specs, views(x, x), threading.Event()).fault
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED and "sm_100a" in fault.message


def test_workspace_counts_as_unwritten(compiler: Compiler) -> None:
    """The input handed in as workspace: reading it is reading what nothing wrote."""
    build, specs = compiled(compiler)
    moved = replace(build, inputs=0, plan=replace(build.plan, workspace=specs))
    x = torch.zeros(ROWS, COLUMNS).bfloat16()
    fault = EmulatorDevice().execute(moved, specs, views(x, x.clone()), threading.Event()).fault
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ


def test_executions_of_a_build_come_in_opposite_pairs(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    build, specs = compiled(compiler)
    other = replace(build)
    seeds = count(1000, 1000)
    device = EmulatorDevice(seed_source=lambda: next(seeds))
    orders: list[Order] = []

    def seen(*arguments: object) -> Result:
        options = arguments[4]
        assert isinstance(options, Options) and options.order is not None
        orders.append(options.order)
        return Result(Execution(None, 0.0))

    monkeypatch.setattr("cutegen_lab.devices.emulator.run_plan", seen)
    for executed in (build, build, build, build, other, other, build):
        device.execute(executed, specs, [], threading.Event())
    assert [(o.seed, o.reverse) for o in orders] == [
        (0, False), (0, True), (3000, False), (3000, True), (0, False), (0, True), (0, False),
    ]  # fmt: skip
    assert [o.noise is None for o in orders] == [True, True, False, False, True, True, True]
    assert all(b == a.opposite() for a, b in (orders[:2], orders[2:4], orders[4:6]))
    assert len({o.clock for o in orders}) == 7
