"""SASS with the candidate's lines, from NVIDIA's disassembler, which is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.compile import disassembly
from cutegen_lab.compile.disassembly import NoDisassembler, SassLine, disassembled, read_listing
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.session.machine_code import machine_code
from tests.harness.checking import ARCH, NEVER, Compiler, problem_of

LISTING = """
.text.kernel_one:
	//## File "/candidate.py", line 12
        /*0000*/                   SHF.L.U32 R3, R3, 0x3, RZ ;   /* 0x0000000303037819 */
                                                                 /* 0x000fca00000006ff */
	//## File "/site-packages/cutlass/x.py", line 7 inlined at "/candidate.py", line 3
	//## File "/candidate.py", line 3
.L_x_1:
        /*0010*/              @!P0 BRA `(.L_x_1) ;               /* 0xfffffffc00fc7947 */
                                                                 /* 0x000fc0000383ffff */
"""
SOURCE = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    value = x[tidx]
    y[tidx] = value * cutlass.Float32(3.0)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    kernel(x, y).launch(grid=[1, 1, 1], block=[64, 1, 1], stream=stream)
"""


def test_a_listing_is_read_with_lines_and_stall_counts() -> None:
    assert read_listing(LISTING) == (
        SassLine("kernel_one:"),
        SassLine("0000  SHF.L.U32 R3, R3, 0x3, RZ ;", 12, 5),
        SassLine(".L_x_1:"),
        SassLine("0010  @!P0 BRA `(.L_x_1) ;", 3, 0),
    )


@pytest.mark.kernel
def test_instructions_stand_at_the_line_they_are_from(compiler: Compiler) -> None:
    problem = problem_of("x * 3", "x: f32[64]")
    artifact = compiler.compile(SOURCE, {}, problem.workloads, ARCH, lambda _: None, NEVER)
    assert isinstance(artifact, Artifact)
    load, multiply = (SOURCE.splitlines().index(line) + 1 for line in ("    value = x[tidx]", SOURCE.splitlines()[10]))
    found = machine_code("c1", "main", artifact.builds["main"])
    assert {line.line for line in found.ptx if "ld.global" in line.text} == {load}
    if found.sass_note:
        pytest.skip(found.sass_note)
    assert {line.line for line in found.sass if "LDG" in line.text} == {load}
    assert {line.line for line in found.sass if "STG" in line.text or "FMUL" in line.text} == {multiply}
    assert all(line.stall is not None for line in found.sass if line.line)
    moved = machine_code("c1", "main", artifact.builds["main"], {load: 2})
    assert {line.line for line in moved.sass} == {0, 2}


def test_what_is_no_cubin_is_refused() -> None:
    with pytest.raises(NoDisassembler, match="nvdisasm"):
        disassembled(b"no cubin")


def test_what_takes_too_much_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvdisasm"
    monkeypatch.setattr(disassembly, "_program", lambda: str(program))
    bounded = disassembly._BOUNDED.replace(f"-t {disassembly._SECONDS}", "-t 1")
    monkeypatch.setattr(disassembly, "_BOUNDED", bounded)
    for script in ("exec yes", "while :; do :; done"):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        with pytest.raises(NoDisassembler, match="nvdisasm failed: exit status -"):  # by a signal, before the timeout
            disassembled(b"")


def test_without_the_program_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly.sys, "path", [])
    monkeypatch.setattr(disassembly.shutil, "which", lambda name: None)
    disassembly._program.cache_clear()
    with pytest.raises(NoDisassembler, match="pip install nvidia-cuda-nvdisasm"):
        disassembled(b"")
    disassembly._program.cache_clear()
