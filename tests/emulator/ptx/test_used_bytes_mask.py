"""``.pragma "used_bytes_mask"`` (PTX ISA 9.0, 11.4): bytes of a load that the mask leaves out may hold anything, and no
result may depend on them."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core import ptx_text
from cutegen_lab.core.verdict import Fault, Verdict
from tests.emulator.ptx_kernel import kernel, run

THREADS = 32


def loaded(pragma: str, load: str, words: int = 4) -> np.ndarray:
    """What each thread finds in its registers after ``load`` from 16 bytes of its own: uint32 [threads, words]."""
    body = f"""
      mul.wide.u32 %rd10, %r1, 16; add.u64 %rd11, %rd1, %rd10; add.u64 %rd12, %rd2, %rd10;
      {pragma}
      {load}
      st.global.v4.b32 [%rd12], {{%r10, %r11, %r12, %r13}};"""
    given = np.arange(1, 4 * THREADS + 1, dtype=np.uint32)
    out = np.zeros(4 * THREADS, np.uint32)
    result = run(kernel(body, 2), [given, out], inputs=1, block=(THREADS, 1, 1))
    assert result.execution.fault is None, result.execution.fault
    return out.reshape(THREADS, 4)[:, :words]


LOAD = "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd11];"
WORDS = np.arange(1, 4 * THREADS + 1, dtype=np.uint32).reshape(THREADS, 4)


def test_bytes_in_use_are_what_memory_has() -> None:
    assert np.array_equal(loaded("", LOAD), WORDS)
    assert np.array_equal(loaded('.pragma "used_bytes_mask 0xffff";', LOAD), WORDS)
    found = loaded('.pragma "used_bytes_mask 0xf0ff";', LOAD)
    assert np.array_equal(found[:, [0, 1, 3]], WORDS[:, [0, 1, 3]])
    assert (found[:, 2] == 0xFFFF_FFFF).all()


def test_parts_of_a_register() -> None:
    found = loaded('.pragma "used_bytes_mask 0x00f3";', LOAD)
    assert np.array_equal(found[:, 0], WORDS[:, 0] | 0xFFFF_0000)
    assert np.array_equal(found[:, 1], WORDS[:, 1])


def test_it_holds_for_the_next_load_only() -> None:
    twice = f"{LOAD} ld.global.b32 %r12, [%rd11+8];"
    assert np.array_equal(loaded('.pragma "used_bytes_mask 0xf0ff";', twice), WORDS)


def test_it_stands_before_a_load() -> None:
    with pytest.raises(AssertionError, match="used_bytes_mask applies to loads only"):
        loaded('.pragma "used_bytes_mask 0xf0ff";', f"add.u32 %r10, %r10, 1; {LOAD}")


def fault_in(space: str, mask: int, offset: int = 0, words: int = 15) -> Fault | None:
    """Four threads read 16 bytes each of ``words`` words, of ``mask`` used, and store the first three."""
    body = f"""
      mul.wide.u32 %rd10, %r1, 16; add.u64 %rd11, %rd1, %rd10; add.u64 %rd12, %rd2, %rd10; mov.b32 %r4, tile;
      shl.b32 %r5, %r1, 4; add.s32 %r5, %r4, %r5; setp.eq.u32 %p1, %r1, 0; @!%p1 bra FILLED; mov.b32 %r6, 0;
    FILL:
      shl.b32 %r7, %r6, 2; add.s32 %r7, %r4, %r7; st.shared.b32 [%r7], %r6; add.s32 %r6, %r6, 1;
      setp.lt.u32 %p2, %r6, {words}; @%p2 bra FILL;
    FILLED:
      bar.sync 0;
      .pragma "used_bytes_mask {mask}";
      ld.{space}.v4.b32 {{%r10, %r11, %r12, %r13}}, [{"%r5" if space == "shared" else "%rd11"}+{offset}];
      st.global.v4.b32 [%rd12], {{%r10, %r11, %r12, %r12}};"""
    given, out = np.arange(words, dtype=np.uint32), np.zeros(16, np.uint32)
    declared = f".shared .align 16 .b8 tile[{4 * words}];"
    result = run(kernel(body, 2, declared), [given, out], inputs=1, block=(4, 1, 1))
    if result.execution.fault is None:
        assert np.array_equal(out.reshape(4, 4)[:, :3].ravel(), [i for i in range(16) if i % 4 != 3])
    return result.execution.fault


@pytest.mark.parametrize("space", ["global", "shared"])
def test_only_what_is_used_need_lie_in_memory(space: str) -> None:
    """As ptxas reads the last three of an array's numbers."""
    assert fault_in(space, 0xFFF) is None
    for mask, offset, words in ((0xFFFF, 0, 15), (0xFFF, 0, 14), (0, 1 << 20, 15), (0xFFF, 1 << 20, 15)):
        fault = fault_in(space, mask, offset, words)
        assert fault is not None and fault.verdict is Verdict.OUT_OF_BOUNDS, (mask, offset, words)
    fault = fault_in(space, 0xFFF, 4)
    assert fault is not None and fault.verdict in (Verdict.MISALIGNED, Verdict.OUT_OF_BOUNDS)


def test_masks_are_found_in_the_text() -> None:
    read = ptx_text.read('.pragma "nounroll";\n.pragma "used_bytes_mask 0xf0ff", "used_bytes_mask 15";\n')
    assert [mask for _, mask in read.used_bytes] == [0xF0FF, 15]
