"""Mistakes planted in the honest TMA and wgmma GEMM: each is found at its line, and the message says what is wrong."""
# ruff: noqa: E501 - tables of mistakes, one a line

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.harness.checking import Compiler, built
from tests.honest.corpus import honest

V = Verdict
INPUTS = tuple(TensorSpec.parse(t) for t in ("a: bf16[328,200]", "b: bf16[200,264]"))
OUTPUTS = (TensorSpec.parse("c: bf16[328,264]"),)
WORKLOAD = Workload("main", INPUTS, OUTPUTS)
SOURCE = honest("gemm_tma_wgmma").source


class Bug(NamedTuple):
    """``new`` replaces ``old`` in the honest kernel (the ``nth`` time that it stands there, from 0)."""

    old: str
    new: str
    verdict: Verdict
    words: str
    nth: int = 0


def without(line: str, verdict: Verdict, words: str, nth: int = 0) -> Bug:
    return Bug(line, "pass", verdict, words, nth)


WAIT_FULL = "cute.arch.mbarrier_wait(full + stage, phase)"
WAIT_EMPTY = "cute.arch.mbarrier_wait(empty + stage, phase)"
STORED = "cute.arch.barrier(barrier_id=STORED, number_of_threads=CONSUMERS)"
RELEASE = "cute.arch.mbarrier_arrive(empty + before, tidx % 128)"
READ_OUT = "cute.arch.cp_async_bulk_wait_group(0, read=True)"
BUGS = {
    "store_without_proxy_fence": without('cute.arch.fence_proxy("async.shared", space="cta")', V.NON_DETERMINISTIC, "no fence.proxy.async"),
    "store_before_all_have_written": without(STORED, V.NON_DETERMINISTIC, "a race", 1),
    "written_before_the_last_store_has_read": without(STORED, V.NON_DETERMINISTIC, "which a bulk copy reads", 0),
    "last_store_never_waited_for": without(READ_OUT, V.NON_DETERMINISTIC, "which a bulk copy reads", 0),
    "ends_before_the_last_store_has_read": without(READ_OUT, V.NON_DETERMINISTIC, "may still read its shared memory", 1),
    "products_without_a_fence": without("warpgroup.fence()", V.NON_DETERMINISTIC, "no wgmma.fence"),
    "sums_scaled_after_the_fence": Bug("warpgroup.fence()", "warpgroup.wait_group(0); warpgroup.fence(); acc.store(acc.load() * 1.5)", V.NON_DETERMINISTIC, "no wgmma.fence"),
    "sums_read_before_the_wait": without("warpgroup.wait_group(0)", V.NON_DETERMINISTIC, "an accumulator of a wgmma"),
    "first_tile_added_to_nothing": Bug("Field.ACCUMULATE, False", "Field.ACCUMULATE, True", V.UNINITIALISED_READ, "which nothing has written, and a later read of shared memory depends on this value"),
    "one_group_too_many_under_way": Bug("warpgroup.wait_group(0)", "warpgroup.wait_group(1)", V.NON_DETERMINISTIC, "an accumulator of a wgmma"),
    "stage_released_before_wgmma_has_read": Bug("warpgroup.wait_group(1)", "warpgroup.wait_group(2)", V.NON_DETERMINISTIC, "which a wgmma reads"),
    "tile_read_before_it_has_come": without(WAIT_FULL, V.NON_DETERMINISTIC, "which a bulk copy writes"),
    "stage_filled_before_it_is_empty": without(WAIT_EMPTY, V.DEADLOCK, "more arrivals than its count"),
    "more_bytes_expected_than_come": Bug("full + stage, stage_bytes", "full + stage, stage_bytes + 1024", V.DEADLOCK, "1024 more bytes"),
    "fewer_bytes_expected_than_come": Bug("full + stage, stage_bytes", "full + stage, stage_bytes // 2", V.NON_DETERMINISTIC, "too few bytes were expected"),
    "expected_by_every_lane": Bug("with cute.arch.elect_one():", "if True:", V.DEADLOCK, "more arrivals than its count"),
    "nobody_expects": Bug("cute.arch.mbarrier_arrive_and_expect_tx(full + stage, stage_bytes)", "cute.arch.mbarrier_arrive(full + stage)", V.NON_DETERMINISTIC, "which a bulk copy writes"),
    "the_other_block_is_not_told": Bug("if tidx % 128 < CLUSTER:  #", "if tidx % 128 < 1:  #", V.DEADLOCK, "more arrival"),
    "first_phase_waited_for": Bug("cutlass.Int32(0), cutlass.Int32(1)", "cutlass.Int32(0), cutlass.Int32(0)", V.DEADLOCK, "4 more arrivals"),
    "wrong_stage_released": Bug("before = stage", "before = stage * 0", V.DEADLOCK, "warp 8 of block (0, 0, 0) of 2 blocks, for the mbarrier"),
    "barriers_used_before_they_are_made": Bug("    cute.arch.cluster_arrive()\n    cute.arch.cluster_wait()\n\n", "\n", V.NON_DETERMINISTIC, "uses the mbarrier"),
    "ends_before_the_other_block_has_done": Bug("    cute.arch.cluster_arrive()  # no block", "    return\n    cute.arch.cluster_arrive()  # no block", V.NON_DETERMINISTIC, "may still access its shared memory"),
    "multicast_outside_the_cluster": Bug("(1 << CLUSTER) - 1)", "(2 << CLUSTER) - 1)", V.LAUNCH_FAILURE, "of a cluster of 2"),
    "half_the_consumers_meet": Bug("number_of_threads=CONSUMERS)\n            rC", "number_of_threads=CONSUMERS - 128)\n            rC", V.BARRIER_DIVERGENCE, "barrier 1"),
}  # fmt: skip


def planted(bug: Bug) -> tuple[str, int]:
    """(the kernel with the mistake, line it begins at)."""
    at = -1
    for _ in range(bug.nth + 1):
        at = SOURCE.index(bug.old, at + 1)
    return SOURCE[:at] + bug.new + SOURCE[at + len(bug.old) :], SOURCE.count("\n", 0, at) + 1


def run(compiler: Compiler, source: str, tensors: Sequence[np.ndarray]) -> Fault | None:
    artifact = built(compiler, source, [WORKLOAD], config={"clusters": 1})
    views = [memoryview(t.reshape(-1).view(np.uint8)) for t in tensors]
    options = Options(shadow=True, races=True)
    return run_plan(artifact.builds["main"], INPUTS + OUTPUTS, views, threading.Event(), options, 2).execution.fault


def tensors() -> list[np.ndarray]:
    """bf16 of small integers, whose sums are exact, and an output of NaN."""
    draw = np.random.default_rng(0)
    values = [draw.integers(-4, 5, s.shape).astype(np.float32) for s in INPUTS]
    halves = [(v.view(np.uint32) >> np.uint32(16)).astype(np.uint16) for v in values]
    return [*halves, np.full(OUTPUTS[0].shape, 0xFFFF, np.uint16)]


def test_the_kernel_without_a_mistake_is_right(compiler: Compiler) -> None:
    a, b, c = tensors()
    assert run(compiler, SOURCE, (a, b, c)) is None
    wide = [np.left_shift(t.astype(np.uint32), np.uint32(16)).view(np.float32) for t in (a, b, c)]
    exact = wide[0] @ wide[1]
    assert np.array_equal(np.abs(exact) < 256, np.abs(wide[2]) < 256)
    assert np.abs(wide[2] - exact).max() <= np.abs(exact).max() / 256


@pytest.mark.parametrize("name", BUGS)
def test_found(compiler: Compiler, name: str) -> None:
    fault = run(compiler, planted(BUGS[name])[0], tensors())
    assert fault is not None, f"{name} was not found"
    assert fault.verdict is BUGS[name].verdict, fault
    assert BUGS[name].words in fault.message
    assert fault.line > 0
