"""Generated text and what it reaches of a kernel file, as one module."""

from __future__ import annotations

import ast

import pytest

from cutegen_lab.templates.emit.bundle import bundle, kernel_file, names_used

LAUNCH = ["@cute.jit", "def launch(x, stream):", "    return widest(x, 0)"]


def test_what_is_reached_is_there_once_and_no_more() -> None:
    text = bundle("skinny_matmul", '"""One."""', ["MOST = 3"], LAUNCH)
    defined = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert defined == ["widest", "leaves", "launch"]
    assert text.splitlines()[:6] == ['"""One."""', "", "import math", "", "import cutlass.cute as cute", ""]
    assert text.count("MOST") == 1 and "cutegen_lab" not in text


def test_what_is_generated_takes_the_place_of_the_file_s_own() -> None:
    epilogue = ["def epilogue(acc, b):", "    return acc + b"]
    text = bundle("skinny_matmul", '"""One."""', [], [*epilogue, *LAUNCH, "    multiply_few(x, stream)"])
    assert text.count("def epilogue(") == 1 and "return acc + b" in text
    assert "MOST = 16  # maximum number of rows of the small operand per block" in text, "with its comment"


def test_limits_are_part_of_the_file() -> None:
    text = bundle(
        "skinny_matmul", '"""One."""', ["def constraints(c):", "    return not why_not(c, 4, 1, True)"], LAUNCH
    )
    assert "def why_not(" in text and "def tile_of(" in text


def test_a_name_that_nobody_has_is_said() -> None:
    with pytest.raises(KeyError, match=r"kernels/skinny_matmul\.py has no nowhere"):
        bundle("skinny_matmul", '"""One."""', [], [*LAUNCH, "    return nowhere(x)"])


def test_a_local_name_is_no_use() -> None:
    assert names_used("def f(fetch):\n    put = fetch\n    return [put for widest in range(3)] + other") == {
        "range", "other"
    }  # fmt: skip
    assert names_used("@jit\ndef f(x: Kind = START) -> Result:\n    return x") == {"jit", "Kind", "START", "Result"}


def test_files_come_after_those_that_they_borrow_from() -> None:
    names = [file.name for file in kernel_file("skinny_matmul").files()]
    assert names[-1] == "skinny_matmul" and {"device.vectors", "limits.skinny_matmul"} < {*names}


def test_what_the_file_defines_takes_the_place_of_what_it_borrows() -> None:
    text = bundle("gemm_row_reduce_sm90", '"""One."""', [], ["def launch(x):", "    multiply_and_reduce(x)"])
    assert text.count("def tile_epilogue(") == text.count("def gemm_kernel(") == 1
    assert "STEPS" in text.partition("def tile_epilogue(")[2].partition("\n\n\n")[0]
