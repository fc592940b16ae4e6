"""discard (PTX ISA 9.7.9.16) leaves undefined bytes: to read them is to read uninitialised memory."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.planted import line_of, ptx_lines
from tests.emulator.ptx_kernel import kernel, run

# One thread stores to the 128 bytes of the output that begin at [%rd2], and one to the next.
STORED = """
  st.global.v4.b32 [%rd2], {%r1, %r1, %r1, %r1}; st.global.v4.b32 [%rd2+128], {7, 7, 7, 7};
"""
DISCARDED = "  discard.global.L2 [%rd2], 128;  // DISCARDED\n"
READ = "  ld.global.b32 %r5, [%rd2];  // READ\n  st.global.b32 [%rd2+64], %r5;"
POISON = 0x7B


def fault_of(body: str, inputs: int = 1, shadow: bool = True) -> tuple[Fault | None, np.ndarray, str]:
    out = np.full(512, POISON, np.uint8)
    ptx = kernel(body + " ret;", 2)
    done = run(ptx, [np.zeros(512, np.uint8), out], inputs=inputs, block=(1, 1, 1), lines=ptx_lines(ptx),
               options=Options(shadow=shadow))  # fmt: skip
    return done.execution.fault, out, ptx


def test_an_output_that_was_discarded_is_not_written() -> None:
    """It holds what the judge put there, so that the judge sees it."""
    fault, out, _ = fault_of(STORED + DISCARDED)
    assert fault is None
    assert (out[:128] == POISON).all() and (out[128:144].view(np.uint32) == 7).all()
    assert (fault_of(STORED + DISCARDED, shadow=False)[1][:128] != 0).all()


def test_where_a_run_is_done_again_it_is_not_written_either() -> None:
    """A register that nobody has written is read, and followed."""
    fault, out, _ = fault_of("  add.s32 %r8, %r9, 1;" + STORED + DISCARDED)
    assert fault is None and (out[:128] == POISON).all()


def test_a_read_of_it_is_found() -> None:
    fault, _, ptx = fault_of(STORED + DISCARDED + READ)
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ and fault.line == line_of(ptx, "READ")
    assert fault_of(STORED + READ)[0] is None


def test_written_again_it_is_there() -> None:
    fault, out, _ = fault_of(STORED + DISCARDED + STORED + READ)
    assert fault is None and (out[:16] == 0).all()


@pytest.mark.parametrize(
    ("body", "verdict", "words"),
    [
        (DISCARDED.replace("%rd2", "%rd1"), Verdict.INPUT_MODIFIED, "t0"),
        (DISCARDED.replace("[%rd2]", "[%rd2+64]"), Verdict.MISALIGNED, "128"),
        (DISCARDED.replace("[%rd2]", "[%rd2+512]"), Verdict.OUT_OF_BOUNDS, "128-byte"),
        (DISCARDED.replace(", 128", ", 64"), Verdict.UNSUPPORTED, "discard"),
    ],
)
def test_a_discard_that_may_not_be(body: str, verdict: Verdict, words: str) -> None:
    fault, _, ptx = fault_of(body)
    assert fault is not None and fault.verdict is verdict and words in fault.message, fault
    assert fault.line == line_of(ptx, "DISCARDED")
