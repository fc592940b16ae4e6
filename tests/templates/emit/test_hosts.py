"""Functions that launch a kernel, written where they are called."""

from __future__ import annotations

import libcst as cst

from cutegen_lab.templates.emit.hosts import with_launchers_written_out
from tests.templates.emit.folding import HEAD

_LAUNCHER = """

def copy_rows(shapes, threads, stream):
    \"\"\"Launches a block a row.\"\"\"
    rows, _ = shapes
    grid = rows
    copy_kernel(shapes, threads).launch(grid=[grid, 1, 1], block=[threads, 1, 1], stream=stream)
"""
_LAUNCHES = """

@cute.kernel
def copy_kernel(shapes, threads):
    pass


@cute.jit
def launch(x, y, stream, threads: cutlass.Constexpr = 32):
    grid = x.shape[0]
    copy_rows((grid, 1), threads, stream)
    copy_rows((y.shape[0], 2), 64, stream)
"""


def written_out(text: str) -> str:
    return with_launchers_written_out(cst.parse_module(HEAD + text)).code


def test_a_launcher_is_written_at_each_of_its_calls_with_names_of_its_own() -> None:
    text = written_out(_LAUNCHER + _LAUNCHES)
    assert "copy_rows" not in text
    assert text.count("copy_kernel((grid, 1), threads).launch(grid=[grid__2, 1, 1], block=[threads, 1, 1]") == 1
    assert "    shapes = (y.shape[0], 2)\n" in text and text.count("copy_kernel(shapes, 64).launch(") == 1
    assert text.count("# Launches a block a row\n") == 2


def test_what_the_dsl_compiles_or_what_returns_something_stays() -> None:
    compiled = _LAUNCHER.replace("def copy_rows", "@cute.jit\ndef copy_rows") + _LAUNCHES
    assert written_out(compiled) == HEAD + compiled
    returning = _LAUNCHER + "    return grid\n" + _LAUNCHES
    assert written_out(returning) == HEAD + returning


def test_one_that_is_called_within_an_expression_stays_defined() -> None:
    text = written_out(_LAUNCHER + _LAUNCHES + "    keep = [copy_rows((1, 1), 32, stream)]\n")
    assert "def copy_rows(" in text and "keep = [copy_rows((1, 1), 32, stream)]" in text
    assert text.count("copy_kernel(") == 4  # itself, the function that stays, and the two calls
