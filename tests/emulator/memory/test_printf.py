"""``vprintf``: what C's printf would write, bounded, and nothing a terminal would obey."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.memory.printf import MOST_LINES, Printed, formatted
from tests.emulator.ptx_kernel import kernel, run


def block(*values: int | float | bytes) -> bytes:
    """Arguments as a kernel lays them out: ints in 4 bytes, bytes (8 of them) as they are, floats as doubles."""
    out = b""
    for value in values:
        raw = struct.pack("<d", value) if isinstance(value, float) else value
        raw = (value & 0xFFFFFFFF).to_bytes(4, "little") if isinstance(raw, int) else raw
        out += bytes(-len(out) % len(raw)) + raw
    return out


def long(value: int) -> bytes:
    return (value % (1 << 64)).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("plain 100%%", (), "plain 100%"),
        ("%d and %i", (-3, 7), "-3 and 7"),
        ("%u", (-1,), "4294967295"),
        ("%x %X %#x %o %#o", (255, 255, 255, 8, 8), "ff FF 0xff 10 010"),
        ("[%5d|%-5d|%05d|%+d|% d]", (42, 42, 42, 42, 42), "[   42|42   |00042|+42| 42]"),
        ("%hhd %hd %hu", (0x1FF, 0x18000, 0x1FFFF), "-1 -32768 65535"),
        ("%d %lld %d", (1, long(-(1 << 40)), 2), "1 -1099511627776 2"),
        ("%llu", (long(-1),), "18446744073709551615"),
        ("%f %.2f %8.3e %g", (1.5, 2.0 / 3, 12345.678, 1e-7), "1.500000 0.67 1.235e+04 1e-07"),
        ("%f %f %f", (float("inf"), float("-inf"), float("nan")), "inf -inf nan"),
        ("%d %f", (1, 2.5), "1 2.500000"),  # the double is aligned to 8
        ("%c%c", (72, 105), "Hi"),
        ("%s!", (long(0x10),), "word!"),
        ("%p", (long(0xABC),), "0xabc"),
        ("%q %", (), "%q %"),
        ("\x1b[2J%c\r", (7,), "\\x1b[2J\\x07\\x0d"),
    ],
)
def test_it_writes_what_c_writes(text: str, arguments: tuple[int | float | bytes, ...], expected: str) -> None:
    given = block(*arguments)
    strings = {0x10: b"word"}
    assert formatted(text.encode(), lambda at, size: given[at : at + size], strings.__getitem__) == expected


def test_lines_join_until_their_newline_and_are_bounded() -> None:
    printed = Printed()
    for text in ("a", "b\nc", "\n", "\n"):
        printed.write(text)
    assert printed.lines == ["ab", "c", ""]
    for _ in range(MOST_LINES):
        printed.write("x\n")
    assert len(printed.lines) == MOST_LINES
    assert printed.text().splitlines()[-1] == "… and 3 more"


CALL = """
  {
  .param .b64 param0; .param .b64 param1; .param .b32 retval0;
  st.param.b64 [param0], %rd20;
  st.param.b64 [param1], %rd21;
  call.uni (retval0), vprintf, (param0, param1);
  ld.param.b32 %r30, [retval0];
  }
"""
EXTERN = ".extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);\n"


def printing(text: str, values: str, call: str = CALL) -> str:
    data = ", ".join(str(b) for b in text.encode() + b"\0")
    return kernel(
        f"""
  mov.b64 %rd20, words; cvta.global.u64 %rd20, %rd20;
  mov.b64 %rd22, depot; cvta.local.u64 %rd21, %rd22;
  {values}
  setp.gt.u32 %p1, %r1, 2;
  @%p1 bra DONE;
  {call}
DONE:
  ret;""",
        0,
        ".local .align 8 .b8 depot[16];",
        f"{EXTERN}.global .align 1 .b8 words[{len(text) + 1}] = {{{data}}};",
    )


def test_each_thread_prints_its_own_values() -> None:
    ptx = printing(
        "thread %d: %f\n", "st.local.b32 [%rd22], %r1; cvt.rn.f64.u32 %fd1, %r1; st.local.f64 [%rd22+8], %fd1;"
    )
    result = run(ptx, [], block=(33, 1, 1))
    assert result.execution.fault is None
    assert result.execution.printed.splitlines() == [f"thread {i}: {i}.000000" for i in range(3)]


def test_two_blocks_have_arguments_of_their_own() -> None:
    ptx = printing("%d\n", "st.local.b32 [%rd22], %r2;")
    printed = run(ptx, [], block=(1, 1, 1), grid=(3, 1, 1)).execution.printed
    assert sorted(printed.splitlines()) == ["0", "1", "2"]


def test_more_conversions_than_arguments_is_a_fault() -> None:
    fault = run(printing("%d %lld %lld\n", "st.local.b32 [%rd22], %r1;"), [], block=(1, 1, 1)).execution.fault
    assert fault is not None and fault.verdict is Verdict.OUT_OF_BOUNDS
    assert "more conversions than arguments" in fault.message


@pytest.mark.parametrize("call", [CALL.replace("vprintf", "malloc"), "call.uni (retval0), vprintf, (%rd20);"])
def test_no_other_call_is_executed(call: str) -> None:
    fault = run(printing("", "", call), [np.zeros(1, np.uint8)][:0], block=(1, 1, 1)).execution.fault
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED
    assert "only vprintf" in fault.message or "operand" in fault.message
