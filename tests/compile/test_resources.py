"""Registers, stack and shared memory agree with NVIDIA's own reader of cubins."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler
from cutegen_lab.compile.disassembly import nvidia_program
from cutegen_lab.compile.ptx import entries
from cutegen_lab.compile.resources import read_resources
from cutegen_lab.core.artifact import Build
from tests.compile.conftest import MATRIX, compile_one, workload
from tests.compile.sources import BODY_LINE, COLUMN_SUM, SCALE, TMA, kernel_body

USAGE = re.compile(r"Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
# A register array indexed by a value known only on the GPU lives on the stack.
STACK = kernel_body(
    "r = cute.make_rmem_tensor((64,), cutlass.Float32)\n"
    "    for k in cutlass.range_constexpr(64):\n        r[k] = x[tidx, k]\n"
    "    y[tidx, 0] = r[tidx % 64]"
)


def cuobjdump() -> str:
    found = nvidia_program("cuobjdump")
    if not found:
        pytest.skip("cuobjdump is not installed: pip install nvidia-cuda-cuobjdump")
    return str(found)


@pytest.mark.parametrize(
    ("source", "work"),
    [
        (SCALE, workload("x: f32[1000]", "y: f32[1000]")),
        (COLUMN_SUM, workload("x: f32[64,32]", "y: f32[32]")),
        (TMA, MATRIX),
        (STACK, MATRIX),
    ],
    ids=["scale", "two kernels", "tma", "stack"],
)
def test_figures_agree_with_cuobjdump(compiler: CageCompiler, tmp_path: Path, source: str, work: object) -> None:
    build: Build = compile_one(compiler, source, work).builds["main"]  # type: ignore[arg-type]
    path = tmp_path / "k.cubin"
    path.write_bytes(build.cubin)
    command = [cuobjdump(), "-res-usage", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    theirs = {name: tuple(map(int, numbers)) for name, *numbers in USAGE.findall(text)}
    ours = {k.name: (k.registers, k.local_bytes, k.static_smem_bytes, 0) for k in build.kernels}
    assert ours == theirs


def test_a_dynamically_indexed_array_is_stack_and_no_spill(compiler: CageCompiler) -> None:
    build = compile_one(compiler, STACK, MATRIX).builds["main"]
    (info,) = build.kernels
    assert info.local_bytes >= 256 and info.spill_store_bytes == info.spill_load_bytes == 0
    assert [(n.code, n.line) for n in build.notes] == [("PTXAS", BODY_LINE)]


def test_spills_are_what_ptxas_says(compiler: CageCompiler) -> None:
    """Far more live values than a thread has registers."""
    source = kernel_body(
        "r = cute.make_rmem_tensor((512,), cutlass.Float32)\n"
        "    for k in cutlass.range_constexpr(512):\n        r[k] = x[k // 64 + tidx % 8, k % 64]\n"
        "    s = cutlass.Float32(0.0)\n"
        "    for k in cutlass.range_constexpr(512):\n        s = s * 1.5 + r[k]\n"
        "    cute.arch.sync_threads()\n"
        "    for k in cutlass.range_constexpr(512):\n        s = s * r[k] + 1.0\n"
        "    y[tidx, 0] = s"
    )
    build = compile_one(compiler, source, MATRIX).builds["main"]
    (info,) = build.kernels
    assert info.local_bytes >= info.spill_store_bytes >= 1000 and info.spill_load_bytes >= 1000
    assert any(note.code == "PTXAS" and "spill" in str(note).lower() for note in build.notes), build.notes


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"\x7fELF" + bytes(200)])
def test_a_damaged_cubin_is_a_value_error(compiler: CageCompiler, damage: bytes) -> None:
    build = compile_one(compiler, SCALE).builds["main"]
    with pytest.raises(ValueError, match="cubin"):
        read_resources(damage, build.ptx, entries(build.ptx))


def test_a_truncated_cubin_never_raises_anything_else(compiler: CageCompiler) -> None:
    build = compile_one(compiler, SCALE).builds["main"]
    for size in range(64, len(build.cubin), 97):
        try:
            read_resources(build.cubin[:size], build.ptx, entries(build.ptx))
        except ValueError:
            continue
