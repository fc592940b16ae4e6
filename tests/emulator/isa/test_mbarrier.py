"""mbarrier operations (PTX ISA 9.7.13.15) on one barrier, by one warp."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.ptx_kernel import kernel, run

BAR = "  .shared .align 8 .b8 bar[64];"
INIT = "  mov.b32 %r7, bar; setp.eq.s32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r7], COUNT; bar.warp.sync -1;\n"
PASSED = """
WAITS:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r7], PHASE; @!%p2 bra WAITS;
"""
STORE = "  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; mov.b32 %r9, 7; st.global.b32 [%rd4], %r9; ret;"


def outcome(code: str, count: int) -> Fault | None:
    body = INIT.replace("COUNT", str(count)) + code + STORE
    out = np.zeros(32, np.uint32)
    result = run(kernel(body, 1, BAR), [out], block=(32, 1, 1), options=Options(shadow=True, races=True))
    if result.execution.fault is None:
        assert (out == 7).all()
    return result.execution.fault


def wait(phase: int) -> str:
    return PASSED.replace("PHASE", str(phase)).replace("WAITS", f"WAITS{phase}")


ARRIVE = "  mbarrier.arrive.shared.b64 %rd9, [%r7];\n"
ONE = "  @%p1 mbarrier.arrive{0}.shared.b64 %rd9, [%r7]{1};\n"
INVAL = "  @%p1 mbarrier.inval.shared.b64 [%r7];\n"
RIGHT = {
    "every_thread_arrives": (ARRIVE + wait(0), 32),
    "two_phases": (ARRIVE + wait(0) + ARRIVE + wait(1), 32),
    "one_arrives_for_all": (ONE.format("", ", 32") + wait(0), 32),
    "state_token": (ARRIVE + "W:\n  mbarrier.try_wait.shared.b64 %p2, [%r7], %rd9; @!%p2 bra W;\n", 32),
    "test_wait": (ARRIVE + "W:\n  mbarrier.test_wait.shared.b64 %p2, [%r7], %rd9; @!%p2 bra W;\n", 32),
    "expected_bytes_come": (
        ONE.format(".expect_tx", ", 64")
        + "  @%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r7], 64;\n" + wait(0), 1,
    ),
    "bytes_come_first": (
        "  @%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r7], 64;\n"
        "  @%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r7], 64;\n" + ONE.format("", "") + wait(0), 1,
    ),
    "dropped_threads_are_not_waited_for_again": (
        "  @!%p1 mbarrier.arrive_drop.shared.b64 %rd9, [%r7];\n" + ONE.format("", "") + wait(0)
        + ONE.format("", "") + wait(1), 32,
    ),
    "not_the_last": (ONE.format(".noComplete", ", 31") + ONE.format("", "") + wait(0), 32),
    "used_again": (
        ARRIVE + wait(0) + "  bar.warp.sync -1; @%p1 mbarrier.inval.shared.b64 [%r7];\n" + INIT.replace("COUNT", "1")
        + ONE.format("", "") + PASSED.replace("PHASE", "0"), 32,
    ),
}  # fmt: skip
WRONG = {
    "last_with_noComplete": (ONE.format(".noComplete", ", 32"), 32, Verdict.LAUNCH_FAILURE, "noComplete"),
    "too_many_arrivals": (ONE.format("", ", 33"), 32, Verdict.DEADLOCK, "more arrivals"),
    "too_few_arrivals": (ONE.format("", ", 30") + wait(0), 32, Verdict.DEADLOCK, "2 more arrivals"),
    "bytes_never_come": (ONE.format(".expect_tx", ", 64") + wait(0), 1, Verdict.DEADLOCK, "64 more bytes"),
    "bytes_come_without_the_second_arrival": (
        ONE.format(".expect_tx", ", 64")
        + "  @%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r7], 64;\n"
        + wait(0),
        2,
        Verdict.DEADLOCK,
        "1 more arrival",
    ),
    "used_after_inval": (
        "  @%p1 mbarrier.inval.shared.b64 [%r7];\n" + ARRIVE,
        32,
        Verdict.UNINITIALISED_READ,
        "no mbarrier",
    ),
    "wrong_parity": (ARRIVE + wait(1) + wait(0) + wait(1), 32, Verdict.DEADLOCK, "32 more arrivals"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    code, count = RIGHT[name]
    assert outcome(code, count) is None


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    code, count, verdict, words = WRONG[name]
    fault = outcome(code, count)
    assert fault is not None and fault.verdict is verdict, fault
    assert words in fault.message
