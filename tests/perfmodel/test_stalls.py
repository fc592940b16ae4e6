"""Predicted waits are at the lines that cause them, and add up to the launch's."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.artifact import SourceLine
from cutegen_lab.core.predicted import BLOCK, WAITS
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.perfmodel import Prediction, predict_launch
from tests.emulator.ptx_kernel import build, run
from tests.emulator.ptx_kernel import kernel as ptx_kernel

START = "  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; mov.u32 %r5, 0;\n"
LOOP = "again:\n{body}\n  add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 50; @%p1 bra again;\n  ret;\n"
CHASE = """  ld.global.u32 %r6, [%rd3]; // line 10
  cvt.u64.u32 %rd4, %r6; // line 11
  add.s64 %rd3, %rd3, %rd4; // line 12
  mul.lo.u32 %r7, %r5, %r5; // line 13"""
MEETS = """  add.u32 %r8, %r5, 1; // line 10
  bar.sync 0; // line 11
  mul.lo.u32 %r7, %r5, %r5; // line 12"""
CHAIN = """  fma.rn.f32 %f1, %f1, %f1, %f1; // line 10
  rsqrt.approx.f32 %f2, %f1; // line 11
  mul.f32 %f1, %f2, %f2; // line 12
  add.u32 %r7, %r7, %r5; // line 13"""


def predicted(body: str) -> Prediction:
    """Of one block of four warps that goes 50 times round ``body``."""
    text = ptx_kernel(START + LOOP.format(body=body), 1)
    places = [(at, line.partition("// line ")[2]) for at, line in enumerate(text.splitlines(), 1)]
    lines = [SourceLine(at, int(line)) for at, line in places if line]
    lines.append(SourceLine(lines[-1].ptx_line + 1, 20))  # the loop's own instructions
    data, block = [np.zeros(512, np.uint8)], (128, 1, 1)
    ran = run(text, data, block=block, lines=lines)
    assert ran.execution.fault is None, ran.execution.fault
    made = build(text, data, block=block, lines=lines)
    (by_line,) = ran.lines(made)
    return predict_launch(ran.per_launch[0], made.plan.launches[0], None, GPUS["H200"], by_line)


@pytest.mark.parametrize(
    ("body", "line", "share"), [(CHASE, 11, 0.5), (MEETS, 11, 0.4), (CHAIN, 11, 0.4)], ids=["loads", "barrier", "chain"]
)
def test_the_line_that_waits_has_the_most(body: str, line: int, share: float) -> None:
    """A load whose value is the next one's address, a barrier in each round, and an approximation in a chain."""
    found = predicted(body)
    by_line = {at: stall for at, stall in found.stalls_us.items() if at > 0}
    assert max(by_line, key=lambda at: by_line[at]) == line
    assert by_line[line] > share * sum(by_line.values())


@pytest.mark.parametrize("body", [CHASE, MEETS, CHAIN])
def test_lines_add_up_to_the_predicted_waits(body: str) -> None:
    found = predicted(body)
    assert sum(found.stalls_us.values()) == pytest.approx(found.parts[WAITS])
    assert found.stalls_us[0] >= found.parts[BLOCK]  # a block's start belongs to no line
