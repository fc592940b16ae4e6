"""The order in which the analyses visit basic blocks."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.emulator.analysis.examine import examined
from cutegen_lab.emulator.translate.cfg import postorder
from tests.emulator.ptx_kernel import build, kernel


@pytest.mark.parametrize(
    ("after", "order"),
    [
        ([[1], [2], []], [2, 1, 0]),
        ([[2], [], [1]], [1, 2, 0]),  # laid out backward
        ([[1], [2], [1, 3], []], [3, 2, 1, 0]),  # a loop
        ([[2], [2], []], [2, 0, 1]),  # the second is never reached
        ([[1, 2], [3], [3], []], [3, 1, 2, 0]),
        ([[]], [0]),
    ],
)
def test_a_block_comes_behind_those_that_it_goes_on_to(after: list[list[int]], order: list[int]) -> None:
    assert postorder(after) == order


def test_blocks_laid_out_backward_take_no_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of waits, each of which jumps to the one before it in the text: each is visited a few times."""
    visits = 0

    class Counted(set[str]):
        def union(self, *others: object) -> set[str]:
            nonlocal visits
            visits += 1
            return super().union(*others)  # type: ignore[arg-type]

    monkeypatch.setattr("cutegen_lab.emulator.translate.cfg.set", Counted, raising=False)
    count = 300
    wait = "L{0}: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra L{0}; add.s32 %r4, %r4, 1; bra L{1};"
    chain = "\n".join(wait.format(i, i - 1) for i in range(1, count))
    body = f"mov.b32 %r3, bar; mov.b32 %r4, 0; bra L{count - 1}; L0: st.global.b32 [%rd1], %r4; ret;\n{chain}"
    ptx = kernel(body, 1, ".shared .align 8 .b8 bar[8];")
    assert examined(build(ptx, [np.zeros(64, np.uint32)], block=(32, 1, 1)), ["x"]) is None
    assert 0 < visits < 20 * count
