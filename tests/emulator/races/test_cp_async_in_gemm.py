"""The honest cp.async GEMM with one wrong line: found at that line, with the line of the copy that it races with."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.harness.checking import Compiler, built
from tests.honest.corpus import FOLDER

SOURCE = (FOLDER / "kernels" / "tensor_core_matmul.py").read_text()
INPUTS = tuple(TensorSpec.parse(t) for t in ("a: bf16[70,200]", "b: bf16[50,200]"))
OUTPUTS = (TensorSpec.parse("c: bf16[70,50]"),)
WAIT, BARRIER = "cute.arch.cp_async_wait_group(STAGES - 2)", "cute.arch.sync_threads()"
BUGS = {
    # what stands there, what is planted, in the message
    "no wait": (WAIT, "pass", "before its own asynchronous copy has completed"),
    "a wait too lax": (WAIT, WAIT.replace("2", "1"), "before its own asynchronous copy has completed"),
    "no barrier": (BARRIER, "pass", "with no barrier between"),
    "filled too early": ("ahead = tile + STAGES - 1", "ahead = tile + STAGES", "asynchronous copy has completed"),
    "the next stage": ("tile % STAGES], tArA", "(tile + 1) % STAGES], tArA", "asynchronous copy has completed"),
}


def fault_of(compiler: Compiler, source: str) -> Fault | None:
    artifact = built(compiler, source, [Workload("main", INPUTS, OUTPUTS)])
    tensors = [np.zeros(spec.nbytes, np.uint8) for spec in INPUTS + OUTPUTS]
    for number, tensor in enumerate(tensors[:2]):
        tensor.view(np.uint16)[:] = np.random.default_rng(number).integers(0x3F00, 0x4100, tensor.size // 2)
    views = [memoryview(t) for t in tensors]
    cancel = threading.Event()
    return run_plan(artifact.builds["main"], INPUTS + OUTPUTS, views, cancel, Options(races=True), 2).execution.fault


def test_the_kernel_as_it_is_has_none(compiler: Compiler) -> None:
    assert fault_of(compiler, SOURCE) is None


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(compiler: Compiler, name: str) -> None:
    there, planted, words = BUGS[name]
    assert there in SOURCE
    source = SOURCE.replace(there, planted)
    fault = fault_of(compiler, source)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and words in fault.message, fault
    lines = source.split("\n")
    assert "cute.copy(load_" in lines[fault.line - 1] or "tBsB" in lines[fault.line - 1]
    copy = next(n for n, line in enumerate(lines, 1) if "cute.copy(" in line and "load" not in line)
    assert f"(line {copy}, `cp.async" in fault.message
