"""A kernel may read where it runs in its grid, and no register that tells one run from another."""

from __future__ import annotations

import pytest

from cutegen_lab.compile.special import ALLOWED, objection
from cutegen_lab.core.artifact import Artifact, CompileFailure, SourceLine
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Verdict
from tests.harness.checking import ARCH, NEVER, Compiler

PTX = """
.visible .entry k(.param .b64 p)
{
    .reg .pred %p<3>;
    .reg .b32 %r<20>, %one;
    mov.u32 %r1, %tid.x;
    mov.u32 %one, {register};
    setp.lt.u32 %p2, %r19, 5;
    ret;
}
"""
LINES = [SourceLine(1, 10), SourceLine(7, 11), SourceLine(8, 12)]
TELLING = [
    "%smid", "%nsmid", "%gridid", "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo",
    "%total_smem_size", "%aggr_smem_size", "%envreg3", "%pm0", "%pm7_64", "%current_graph_exec", "%warpid", "%nwarpid",
    "%reserved_smem_offset_begin", "%of_tomorrow", "%r20", "%other1",
]  # fmt: skip


@pytest.mark.parametrize("register", TELLING)
def test_a_register_that_tells_runs_apart_is_refused(register: str) -> None:
    said = objection(PTX.replace("{register}", register), LINES)
    assert said.startswith(f"line 11 reads the special register {register}: "), said


@pytest.mark.parametrize("register", [*(f"%{name}" for name in sorted(ALLOWED)), "%ctaid.z", "%r19", "%one", "WARP_SZ"])
def test_where_it_runs_and_its_own_registers_it_may_read(register: str) -> None:
    assert objection(PTX.replace("{register}", register), LINES) == ""


@pytest.mark.parametrize("declared", [".reg .b32 %smid;", ".reg .b64 %clock<65>;"])
def test_a_declaration_makes_no_register_of_it(declared: str) -> None:
    name = "%smid" if "smid" in declared else "%clock64"
    assert objection(PTX.replace("    mov.u32 %one", f"    {declared} mov.u32 %one").replace("{register}", name), LINES)


def test_a_comment_reads_nothing() -> None:
    assert objection(PTX.replace("{register}", "%tid.y; // %clock"), LINES) == ""


KERNEL = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def add_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    told = cutlass.Int32(READ)
    if told >= 0:
        mY[tidx] = mX[tidx] + 1.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    add_kernel(x, y).launch(grid=[1, 1, 1], block=[64, 1, 1], stream=stream)
"""
WORKLOAD = Workload("main", (TensorSpec.parse("x: f32[64]"),), (TensorSpec.parse("y: f32[64]"),))


@pytest.mark.parametrize("name", ["smid", "clock", "globaltimer"])
def test_a_kernel_that_reads_one_is_not_compiled(compiler: Compiler, name: str) -> None:
    def compiled(read: str) -> Artifact | CompileFailure:
        return compiler.compile(KERNEL.replace("READ", read), {}, [WORKLOAD], ARCH, lambda line: None, NEVER)

    failure = compiled(f"cute.arch.{name}()")
    assert isinstance(failure, CompileFailure) and failure.verdict is Verdict.CONTRACT, failure
    line = next(n for n, text in enumerate(KERNEL.split("\n"), 1) if "READ" in text)
    assert f"line {line} reads the special register %{name}" in failure.reason
    assert isinstance(compiled("cute.arch.lane_idx()"), Artifact)
