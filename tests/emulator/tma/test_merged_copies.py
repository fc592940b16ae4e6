"""TMA copies that are executed together leave the same memory and counters as one by one."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import Options, run_plan
from cutegen_lab.emulator.tma import merged
from tests.harness.checking import Compiler, built

SOURCE = Path(__file__).parents[2] / "honest" / "kernels" / "gemm_tma_wgmma.py"


@pytest.fixture(scope="module")
def build(compiler: Compiler) -> tuple[Build, tuple[TensorSpec, ...]]:
    """A GEMM with multicast, ragged at every edge; 10 blocks, some of which end before others."""
    m, n, k = 904, 520, 200
    specs = tuple(TensorSpec.parse(t) for t in (f"a: bf16[{m},{k}]", f"b: bf16[{k},{n}]", f"c: bf16[{m},{n}]"))
    workload = Workload("main", specs[:2], specs[2:])
    return built(compiler, SOURCE.read_text(), [workload], config={"clusters": 5}).builds["main"], specs


def _run(build: Build, specs: tuple[TensorSpec, ...], shadow: bool) -> tuple[bytes, dict[str, float]]:
    rng = np.random.default_rng(7)
    tensors = [np.asarray(rng.normal(size=s.shape).astype(np.float32).view(np.uint32) >> 16, np.uint16) for s in specs]
    views = [memoryview(t.reshape(-1).view(np.uint8)) for t in tensors]
    result = run_plan(build, specs, views, threading.Event(), Options(races=False, shadow=shadow), 2)
    assert result.execution.fault is None, result.execution.fault
    return tensors[2].tobytes(), result.execution.counters


@pytest.mark.parametrize("shadow", [False, True])
def test_together_is_one_by_one(
    build: tuple[Build, tuple[TensorSpec, ...]], shadow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[bool] = []
    for name in ("_load", "_store"):
        function = getattr(merged, name)
        monkeypatch.setattr(merged, name, lambda m, group, f=function: done.append(f(m, group)) or done[-1])
    together = _run(*build, shadow)
    assert True in done and False in done
    monkeypatch.setattr(merged, "_FEWEST", 1 << 30)
    assert _run(*build, shadow) == together


def test_a_box_that_nothing_has_written_is_seen(build: tuple[Build, tuple[TensorSpec, ...]]) -> None:
    made, specs = build
    tensors = [np.zeros(s.shape, np.uint16) for s in specs]
    views = [memoryview(t.reshape(-1).view(np.uint8)) for t in tensors]
    fault = run_plan(made, specs, views, threading.Event(), Options(races=False, shadow=True), 1).execution.fault
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ
    assert "cp.async.bulk.tensor" in fault.instruction
