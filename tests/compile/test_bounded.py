"""What the parent reads of a candidate's text and output takes time linear in its length, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from cutegen_lab.compile.lines import source_lines
from cutegen_lab.compile.ptx import entries
from cutegen_lab.compile.remarks import remark_notes, stack_use
from cutegen_lab.compile.state import module_variables

MEGABYTE = 1 << 20
ENTRY = ".entry k(.param .b64 p)\n{\n"
PTX = {
    "lines": "\n" * MEGABYTE,
    "entries": ".entry k(" * (MEGABYTE // 9),
    "parameters": ".entry k(" + ".param .b64 .ptr .a " * (MEGABYTE // 20) + ")",
    "loads": ENTRY + "ld.param.b32 p " * (MEGABYTE // 15),
    "variables": ".global " * (MEGABYTE // 8),
    "variable": ".global" + "\n" * MEGABYTE,
    "locations": ".loc 1 1 1\n" * (MEGABYTE // 11),
}
OUTPUT = {
    "arrows": "remark[ptxas]: x\n" + "-->" * (MEGABYTE // 12),
    "remarks": "remark[ptxas]: x\n" * (MEGABYTE // 68),
    "suggestions": "remark[ptxas]: x\n" + "suggestion: " * (MEGABYTE // 48),
    "functions": "Function properties for " * (MEGABYTE // 96),
    "escapes": "\x1b[" + "1;" * (MEGABYTE // 8),
}


def variables(ptx: str) -> object:
    return module_variables(b"", ptx)


def lines(ptx: str) -> object:
    return source_lines(ptx, "candidate.py")


@pytest.mark.parametrize("reader", [entries, variables, lines])
@pytest.mark.parametrize("kind", PTX)
@pytest.mark.timeout(30)  # of quadratic time each would take minutes or hours
def test_ptx_of_a_megabyte_is_read_at_once(reader: Callable[[str], object], kind: str) -> None:
    with suppress(ValueError):  # b"" is no cubin
        reader(PTX[kind])


@pytest.mark.parametrize("reader", [remark_notes, stack_use])
@pytest.mark.parametrize("kind", OUTPUT)
@pytest.mark.timeout(30)
def test_output_is_read_at_once(reader: Callable[[str], object], kind: str) -> None:
    reader(OUTPUT[kind])
