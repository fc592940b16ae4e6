"""Layouts that a candidate makes, reported by the cage."""

from __future__ import annotations

from typing import Any

import pytest

from cutegen_lab.compile import CageCompiler
from cutegen_lab.compile.reply import read_layouts
from cutegen_lab.core.artifact import CompileFailure, TracedLayout
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.cutespec.build import compile_text
from cutegen_lab.layouts.traced import made_layouts
from tests.compile.conftest import ARCH, MATRIX, compile_one
from tests.compile.sources import HEAD, SCALE

TILE = f"""{HEAD}
@cute.kernel
def kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    layout = cute.make_layout((64, 64), stride=(64, 1))
    layout = cute.make_composed_layout(cute.make_swizzle(5, 0, 6), 0, layout)
    tile = cutlass.utils.SmemAllocator().allocate_tensor(mX.element_type, layout, 16)
    for row in cutlass.range_constexpr(2):
        tile[row, tidx] = mX[row, tidx]
    cute.arch.sync_threads()
    mY[tidx, 0] = tile[0, tidx]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    kernel(x, y).launch(grid=[1, 1, 1], block=[64, 1, 1], stream=stream)
"""
SPEC = """kernel product for sm_90a
in  x: bf16[256, 256]
in  w: bf16[256, 256]
out y: bf16 = x @ w.T
tile 128x128x64
stages 2
"""


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(TILE.split("\n"), 1) if text in line)


def test_layouts_and_tensors_in_shared_memory_with_their_lines(compiler: CageCompiler) -> None:
    traced = compiler.layouts(TILE, {}, MATRIX, ARCH)
    assert isinstance(traced, tuple), traced
    made = {(one.layout, one.dtype): one.lines for one in made_layouts(traced)}
    assert line_of("allocate_tensor") in made["Sw<5,0,6> o 0 o (64,64):(64,1)", "f32"]
    assert line_of("make_composed_layout") in made["Sw<5,0,6> o 0 o (64,64):(64,1)", ""]
    assert line_of("layout = cute.make_layout") in made["(64,64):(64,1)", ""]
    assert made_layouts(traced)[0].dtype, "tensors come first"


def test_a_product_has_its_operands_under_the_swizzle_of_wgmma(compiler: CageCompiler) -> None:
    product = compile_text(SPEC)
    traced = compiler.layouts(product.source, product.config, product.problem.workload, product.arch)
    assert isinstance(traced, tuple), traced
    tiles = {one.layout for one in made_layouts(traced) if one.dtype == "bf16"}
    assert "Sw<3,3,3> o 0 o ((8,16),(64,1),(1,2)):((64,512),(1,0),(0,8192))" in tiles, tiles
    found = {one.layout for one in made_layouts(traced)}
    assert {"sm90 64x128x16 bf16 C", "128x64 bf16 128B"} <= found, found


def test_a_build_is_what_it_was(compiler: CageCompiler) -> None:
    before = compile_one(compiler, SCALE, threads=64).builds["main"]
    assert isinstance(compiler.layouts(TILE, {}, MATRIX, ARCH), tuple)
    assert compile_one(compiler, SCALE + "\n", threads=64).builds["main"].cubin == before.cubin


def test_what_does_not_compile_says_why(compiler: CageCompiler) -> None:
    refused = compiler.layouts("import os\n" + TILE, {}, MATRIX, ARCH)
    assert isinstance(refused, CompileFailure) and refused.verdict is Verdict.REJECTED_SOURCE
    broken = compiler.layouts(TILE.replace("sync_threads()", "sync_threads(1, 2, 3, 4)"), {}, MATRIX, ARCH)
    assert isinstance(broken, CompileFailure) and broken.verdict is Verdict.COMPILE_ERROR


@pytest.mark.parametrize(
    "reply", [{}, {"layouts": 3}, {"layouts": [[1]]}, {"layouts": [["1", "x"]]}, {"layouts": [[1, "x" * 30_000]]}]
)
def test_nonsense_from_the_cage_is_refused(reply: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a reply|values to unpack"):
        read_layouts(reply)


def test_a_reply_is_read() -> None:
    assert read_layouts({"layouts": [[3, "x"]]}) == (TracedLayout(3, "x"),)
