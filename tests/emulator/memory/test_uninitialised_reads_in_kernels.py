"""Compiled kernels that read uninitialised memory: rows past the end may stay uninitialised, what reaches the output
may not."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.harness.checking import Compiler, built
from tests.honest.corpus import FOLDER

PRODUCT, ROWS = (
    (FOLDER / "kernels" / f"{name}.py").read_text() for name in ("tensor_core_matmul", "rows_past_the_end")
)
CLAMPED = "cutlass.min(first + r, rows - 1)"
EXISTS = "if column < k:"
SIZES = {
    PRODUCT: (("a: bf16[70,40]", "b: bf16[50,40]"), "c: bf16[70,50]"),
    ROWS: (("x: bf16[21,512]",), "y: bf16[21,512]"),
}
BUGS = {
    # kernel, what stands there, what is planted, in the line that is named, in the message
    "no zeros past the last column": (PRODUCT, "to.fill(0.0)", "pass", "cute.copy(load_", "16 bytes of shared memory"),
    "sums not cleared": (PRODUCT, "    acc.fill(0.0)\n", "", "", "register"),
    "another row's sum": (ROWS, "sums[0, local] +", "sums[0, (local + 1) % ROWS] +", "sX[", "shared memory"),
}


def fault_of(compiler: Compiler, kernel: str, source: str) -> Fault | None:
    inputs, output = SIZES[kernel]
    specs = tuple(TensorSpec.parse(text) for text in (*inputs, output))
    artifact = built(compiler, source, [Workload("main", specs[:-1], specs[-1:])])
    tensors = [np.zeros(spec.nbytes, np.uint8) for spec in specs]
    for number, tensor in enumerate(tensors[:-1]):
        tensor.view(np.uint16)[:] = np.random.default_rng(number).integers(0x3F00, 0x4100, tensor.size // 2)
    views = [memoryview(t) for t in tensors]
    options = Options(races=True)
    return run_plan(artifact.builds["main"], specs, views, threading.Event(), options, len(inputs)).execution.fault


def test_rows_that_do_not_exist_need_not_be_copied(compiler: Compiler) -> None:
    assert CLAMPED in PRODUCT and EXISTS in PRODUCT
    left_out = PRODUCT.replace(CLAMPED, "first + r").replace(EXISTS, "if column < k and row < rows:")
    left_out = left_out.replace(
        "            else:\n                to.fill", "            elif column >= k:\n                to.fill"
    )
    assert fault_of(compiler, PRODUCT, left_out) is None
    assert fault_of(compiler, ROWS, ROWS) is None


@pytest.mark.parametrize("name", BUGS)
def test_what_reaches_the_output_is_named_where_it_was_read(compiler: Compiler, name: str) -> None:
    kernel, there, planted, line, words = BUGS[name]
    assert there in kernel
    source = kernel.replace(there, planted)
    fault = fault_of(compiler, kernel, source)
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ, fault
    assert words in fault.message and "a store to global memory depends on this value (line" in fault.message
    assert fault.line and line in source.split("\n")[fault.line - 1], fault
