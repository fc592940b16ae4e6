"""Each planted bug (planted_bugs/) is found at its line, which the comment FAULT marks, and first thread."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.emulator.planted import line_of, ptx_lines
from tests.emulator.ptx_kernel import build, kernel, run

V = Verdict
BUGS = [
    # fixture, threads, verdict, first offending thread, in the message
    ("oob_load", 80, V.OUT_OF_BOUNDS, 64, "0 bytes past the end of t0"),
    ("oob_store", 64, V.OUT_OF_BOUNDS, 63, "0 bytes past the end of t1"),
    ("oob_before", 64, V.OUT_OF_BOUNDS, 0, "4 bytes before t0"),
    ("misaligned_vector", 32, V.MISALIGNED, 1, "not a multiple of 16"),
    ("misaligned_shared", 32, V.MISALIGNED, 1, "not a multiple of 8"),
    ("shared_oob", 32, V.OUT_OF_BOUNDS, 16, "outside its 256 bytes"),
    ("shared_never_written", 64, V.UNINITIALISED_READ, 16, "shared memory at byte 64"),
    ("output_never_written", 32, V.UNINITIALISED_READ, 0, "t1"),
    ("barrier_in_branch", 32, V.BARRIER_DIVERGENCE, 0, "20 of the 32 running threads"),
    ("barrier_count", 64, V.BARRIER_DIVERGENCE, 0, "never opens"),
    ("shuffle_in_branch", 32, V.BARRIER_DIVERGENCE, 0, "16 of the 32"),
    ("endless_loop", 32, V.HANG, 0, "0 of 3 blocks have"),
    ("mbarrier_deadlock", 32, V.DEADLOCK, 0, "try_wait"),
    ("unknown_opcode", 32, V.UNSUPPORTED, None, "tcgen05"),
    ("unknown_modifier", 32, V.UNSUPPORTED, None, ".wrong"),
    ("trap", 32, V.LAUNCH_FAILURE, 5, "trap"),
    ("store_to_input", 32, V.INPUT_MODIFIED, 5, "writes 4 bytes of t0: u8[256], which is only for reading, at byte 20"),
    ("atomic_on_input", 32, V.INPUT_MODIFIED, 5, "writes 4 bytes of t0"),
    ("copy_not_waited", 32, V.NON_DETERMINISTIC, 0, "reads byte 0 of shared memory before its own asynchronous copy"),
    ("copy_waited_too_little", 32, V.NON_DETERMINISTIC, 0, "reads byte 512 of shared memory before its own"),
]


def bug(name: str) -> str:
    return (Path(__file__).parent / "planted_bugs" / f"{name}.ptx").read_text()


def fault_of(name: str, threads: int) -> tuple[str, Fault]:
    ptx = bug(name)
    tensors = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    result = run(ptx, tensors, inputs=1, options=Options(budget=20_000), grid=(3, 1, 1), block=(threads, 1, 1),
                 lines=ptx_lines(ptx))  # fmt: skip
    assert result.execution.fault is not None, f"{name} was not found"
    return ptx, result.execution.fault


@pytest.mark.parametrize(("name", "threads", "verdict", "thread", "words"), BUGS, ids=[b[0] for b in BUGS])
def test_found(name: str, threads: int, verdict: Verdict, thread: int | None, words: str) -> None:
    ptx, fault = fault_of(name, threads)
    assert fault.verdict is verdict, fault
    assert words in fault.message
    marked = line_of(ptx, "FAULT")
    assert fault.line == marked
    text = ptx.split("\n")[marked - 1].split(";")[0].strip()
    assert fault.instruction == text
    if thread is not None:
        assert fault.thread == (thread, 0, 0) and fault.block == (0, 0, 0) and fault.kernel == "k"


def test_the_same_kernels_without_their_bug_pass() -> None:
    """The honest corpus: nothing is reported where nothing is wrong."""
    fixes = {
        "oob_load": ("", "", 64), "oob_store": ("[%rd5+4]", "[%rd5]", 64), "oob_before": ("[%rd4+-4]", "[%rd4]", 64),
        "misaligned_vector": ("mul.wide.u32 %rd3, %r1, 4", "mul.wide.u32 %rd3, %r1, 16", 16),
        "misaligned_shared": ("ld.shared.b64 %rd6, [%r6]", "ld.shared.b64 %rd6, [%r7+8]", 32),
        "shared_oob": ("%r1, 16, %r7", "%r1, 4, %r7", 64), "shared_never_written": ("%r1, 16", "%r1, 64", 64),
        "barrier_in_branch": ("%r1, 20", "%r1, 32", 32), "barrier_count": ("bar.sync 2", "bar.sync 1", 64),
        "shuffle_in_branch": ("%r1, 16", "%r1, 32", 32), "endless_loop": ("%r2, %r2, 0", "%r2, %r2, 1", 32),
        "mbarrier_deadlock": ("[%r7], 2", "[%r7], 1", 32), "unknown_modifier": ("add.wrong.s32", "add.s32", 32),
        "trap": ("%p1, %r1, 5", "%p1, %r1, 99", 32),
        "store_to_input": ("st.global.b32 [%rd4]", "st.global.b32 [%rd5]", 32),
        "copy_not_waited": ("bar.sync 0", "cp.async.wait_group 0; bar.sync 0", 32),
        "copy_waited_too_little": ("wait_group 1", "wait_group 0", 32),
        "atomic_on_input": ("setp.lt.s32 %p1, %r1, 5", "setp.lt.s32 %p1, %r1, 32", 32),
    }  # fmt: skip
    for name, (old, new, threads) in fixes.items():
        ptx = bug(name)
        assert old in ptx
        tensors = [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)]
        result = run(ptx.replace(old, new), tensors, inputs=1, block=(threads, 1, 1))
        assert result.execution.fault is None, (name, result.execution.fault)


def test_a_buffer_is_never_indexed_outside_even_by_wild_addresses() -> None:
    body = "  mov.b64 %rd3, 0x123456789; ld.global.b32 %r4, [%rd3]; st.global.b32 [%rd1], %r4; ret;"
    result = run(kernel(body, 1), [np.zeros(8, np.uint32)], block=(32, 1, 1))
    assert result.execution.fault is not None and result.execution.fault.verdict is V.OUT_OF_BOUNDS
    assert result.execution.fault.address == 0x123456789


def test_an_endless_loop_is_cancelled_at_once() -> None:
    ptx = bug("endless_loop")
    tensors = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    made = build(ptx, tensors, block=(32, 1, 1))
    views = [memoryview(t.view(np.uint8)) for t in tensors]
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(Cancelled):
        run_plan(made, [TensorSpec.parse("t: u8[256]")] * 2, views, cancel, Options(budget=1 << 60))


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"block": (32, 1, 1), "smem": 240_000}, "240000 bytes of shared memory"),
        ({"block": (1025, 1, 1)}, "(1025, 1, 1)"),
        ({"block": (64, 32, 1)}, "2048 threads per block"),
        ({"block": (32, 1, 1), "grid": (1, 70_000, 1)}, "grid (1, 70000, 1)"),
        ({"block": (32, 1, 1), "grid": (3, 1, 1), "cluster": (2, 1, 1)}, "not a multiple of cluster"),
        ({"block": (32, 1, 1), "grid": (32, 1, 1), "cluster": (32, 1, 1)}, "cluster (32, 1, 1)"),
    ],
)
def test_launch_limits(launch: dict[str, tuple[int, int, int]], words: str) -> None:
    result = run(kernel("  ret;", 1), [np.zeros(8, np.uint32)], **launch)
    fault = result.execution.fault
    assert fault is not None and fault.verdict is V.INVALID_PLAN and words in fault.message
