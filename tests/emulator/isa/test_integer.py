"""Integer, logic and comparison opcodes against Python's own integers."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.ptx_kernel import evaluate

U32 = [0, 1, 2, 31, 32, 33, 255, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF]
M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def words(bits: int, operands: int, seed: int = 7) -> list[list[int]]:
    rng = random.Random(seed)  # noqa: S311 - test data
    edge = [v & ((1 << bits) - 1) for v in (0, 1, 2, 3, -1, -2, 1 << (bits - 1), (1 << (bits - 1)) - 1, 5, -7, 100)]
    rows = [[rng.choice(edge) for _ in range(operands)] for _ in range(70)]
    rows += [[rng.getrandbits(bits) for _ in range(operands)] for _ in range(58)]
    return rows


def trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def bfe(a: int, position: int, length: int, bits: int, is_signed: bool) -> int:
    position, length = position & 0xFF, length & 0xFF
    sign = 0
    if is_signed and length:
        sign = a >> min(position + length - 1, bits - 1) & 1
    out = 0
    for i in range(bits):
        inside = i < length and position + i < bits
        out |= (a >> (position + i) & 1 if inside else sign) << i
    return out


def bfi(a: int, b: int, position: int, length: int) -> int:
    out = b
    for i in range(length & 0xFF):
        at = (position & 0xFF) + i
        if at < 32:
            out = out & ~(1 << at) | (a >> i & 1) << at
    return out


# Selectors of prmt's modes for c = 0, 1, 2, 3, as the ISA's table has them.
PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}  # fmt: skip


def prmt(a: int, b: int, c: int) -> int:
    both = (b << 32 | a).to_bytes(8, "little")
    picked = []
    for i in range(4):
        selector = c >> (4 * i) & 15
        byte = both[selector & 7]
        picked.append((255 if byte & 128 else 0) if selector & 8 else byte)
    return int.from_bytes(bytes(picked), "little")


def pairs(a: int, b: int, function: Callable[[int, int], int]) -> int:
    """``function`` on the two 16-bit halves."""
    low, high = function(a & 0xFFFF, b & 0xFFFF), function(a >> 16, b >> 16)
    return (high & 0xFFFF) << 16 | low & 0xFFFF


Function = Callable[..., int]
TABLE_32: list[tuple[str, int, Function]] = [
    ("add.s32 %r9, %r10, %r11;", 2, lambda a, b: a + b),
    ("sub.s32 %r9, %r10, %r11;", 2, lambda a, b: a - b),
    ("add.sat.s32 %r9, %r10, %r11;", 2, lambda a, b: max(min(signed(a) + signed(b), 2**31 - 1), -(2**31))),
    ("sub.sat.s32 %r9, %r10, %r11;", 2, lambda a, b: max(min(signed(a) - signed(b), 2**31 - 1), -(2**31))),
    ("mul.lo.s32 %r9, %r10, %r11;", 2, lambda a, b: a * b),
    ("mul.hi.u32 %r9, %r10, %r11;", 2, lambda a, b: a * b >> 32),
    ("mul.hi.s32 %r9, %r10, %r11;", 2, lambda a, b: signed(a) * signed(b) >> 32),
    ("mad.lo.s32 %r9, %r10, %r11, %r12;", 3, lambda a, b, c: a * b + c),
    ("mad.hi.u32 %r9, %r10, %r11, %r12;", 3, lambda a, b, c: (a * b >> 32) + c),
    ("mul24.lo.u32 %r9, %r10, %r11;", 2, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    ("mad24.lo.s32 %r9, %r10, %r11, %r12;", 3, lambda a, b, c: signed(a, 24) * signed(b, 24) + c),
    ("div.u32 %r9, %r10, %r11;", 2, lambda a, b: a // b if b else M32),
    ("rem.u32 %r9, %r10, %r11;", 2, lambda a, b: a % b if b else -1),
    ("div.s32 %r9, %r10, %r11;", 2, lambda a, b: trunc_div(signed(a), signed(b)) if b else -1),
    ("rem.s32 %r9, %r10, %r11;", 2,
     lambda a, b: signed(a) - signed(b) * trunc_div(signed(a), signed(b)) if b else -1),
    ("abs.s32 %r9, %r10;", 1, lambda a: abs(signed(a))),
    ("neg.s32 %r9, %r10;", 1, lambda a: -a),
    ("min.s32 %r9, %r10, %r11;", 2, lambda a, b: min(signed(a), signed(b))),
    ("max.u32 %r9, %r10, %r11;", 2, max),
    ("sad.s32 %r9, %r10, %r11, %r12;", 3, lambda a, b, c: abs(signed(a) - signed(b)) + c),
    ("sad.u32 %r9, %r10, %r11, %r12;", 3, lambda a, b, c: abs(a - b) + c),
    ("popc.b32 %r9, %r10;", 1, lambda a: a.bit_count()),
    ("clz.b32 %r9, %r10;", 1, lambda a: 32 - a.bit_length()),
    ("brev.b32 %r9, %r10;", 1, lambda a: int(f"{a:032b}"[::-1], 2)),
    ("bfind.u32 %r9, %r10;", 1, lambda a: a.bit_length() - 1),
    ("bfind.s32 %r9, %r10;", 1, lambda a: (~signed(a) if signed(a) < 0 else a).bit_length() - 1),
    ("bfind.shiftamt.u32 %r9, %r10;", 1, lambda a: 32 - a.bit_length() if a else -1),
    ("bfe.u32 %r9, %r10, %r11, %r12;", 3, lambda a, p, n: bfe(a, p, n, 32, False)),
    ("bfe.s32 %r9, %r10, %r11, %r12;", 3, lambda a, p, n: bfe(a, p, n, 32, True)),
    ("bfe.u32 %r9, %r10, 7, 9;", 1, lambda a: a >> 7 & 0x1FF),
    ("bfi.b32 %r9, %r10, %r11, %r12, %r13;", 4, bfi),
    ("and.b32 %r9, %r10, %r11;", 2, lambda a, b: a & b),
    ("or.b32 %r9, %r10, %r11;", 2, lambda a, b: a | b),
    ("xor.b32 %r9, %r10, -1;", 1, lambda a: a ^ M32),
    ("not.b32 %r9, %r10;", 1, lambda a: ~a),
    ("cnot.b32 %r9, %r10;", 1, lambda a: int(a == 0)),
    ("shl.b32 %r9, %r10, %r11;", 2, lambda a, n: a << min(n, 64)),
    ("shr.u32 %r9, %r10, %r11;", 2, lambda a, n: a >> min(n, 64)),
    ("shr.s32 %r9, %r10, %r11;", 2, lambda a, n: signed(a) >> min(n, 64)),
    ("shr.s32 %r9, %r10, 40;", 1, lambda a: signed(a) >> 40),
    ("shf.l.wrap.b32 %r9, %r10, %r11, %r12;", 3, lambda a, b, n: ((b << 32 | a) << (n & 31)) >> 32),
    ("shf.r.wrap.b32 %r9, %r10, %r11, %r12;", 3, lambda a, b, n: (b << 32 | a) >> (n & 31)),
    ("shf.r.clamp.b32 %r9, %r10, %r11, %r12;", 3, lambda a, b, n: (b << 32 | a) >> min(n, 32)),
    ("lop3.b32 %r9, %r10, %r11, %r12, 0xE8;", 3, lambda a, b, c: a & b | a & c | b & c),
    ("lop3.b32 %r9, %r10, %r11, %r12, 0x96;", 3, lambda a, b, c: a ^ b ^ c),
    ("prmt.b32 %r9, %r10, %r11, 0x5410;", 2, lambda a, b: prmt(a, b, 0x5410)),
    ("prmt.b32 %r9, %r10, %r11, %r12;", 3, prmt),
    ("setp.gt.u32 %p1, %r10, %r11; selp.b32 %r9, %r10, %r11, %p1;", 2, max),
    ("slct.b32.s32 %r9, %r10, %r11, %r12;", 3, lambda a, b, c: a if signed(c) >= 0 else b),
    ("set.lt.u32.s32 %r9, %r10, %r11;", 2, lambda a, b: M32 if signed(a) < signed(b) else 0),
    ("mov.b32 {%rs1, %rs2}, %r10; mov.b32 %r9, {%rs2, %rs1};", 1, lambda a: a >> 16 | a << 16),
    ("add.u16x2 %r9, %r10, %r11;", 2, lambda a, b: pairs(a, b, lambda x, y: x + y)),
    ("add.s16x2 %r9, %r10, %r11;", 2, lambda a, b: pairs(a, b, lambda x, y: x + y)),
    ("min.s16x2 %r9, %r10, %r11;", 2, lambda a, b: pairs(a, b, lambda x, y: min(signed(x, 16), signed(y, 16)))),
    ("max.u16x2 %r9, %r10, %r11;", 2, lambda a, b: pairs(a, b, max)),
    ("max.relu.s16x2 %r9, %r10, %r11;", 2,
     lambda a, b: pairs(a, b, lambda x, y: max(signed(x, 16), signed(y, 16), 0))),
    ("min.relu.s32 %r9, %r10, %r11;", 2, lambda a, b: max(min(signed(a), signed(b)), 0)),
    ("dp4a.u32.u32 %r9, %r10, %r11, %r12;", 3,
     lambda a, b, c: sum((a >> 8 * i & 255) * (b >> 8 * i & 255) for i in range(4)) + c),
    ("dp4a.s32.u32 %r9, %r10, %r11, %r12;", 3,
     lambda a, b, c: sum(signed(a >> 8 * i & 255, 8) * (b >> 8 * i & 255) for i in range(4)) + c),
    ("dp2a.lo.s32.u32 %r9, %r10, %r11, %r12;", 3,
     lambda a, b, c: sum(signed(a >> 16 * i & 0xFFFF, 16) * (b >> 8 * i & 255) for i in range(2)) + c),
    ("dp2a.hi.u32.s32 %r9, %r10, %r11, %r12;", 3,
     lambda a, b, c: sum((a >> 16 * i & 0xFFFF) * signed(b >> 8 * i + 16 & 255, 8) for i in range(2)) + c),
    ("szext.clamp.s32 %r9, %r10, %r11;", 2, lambda a, n: bfe(a, 0, min(n, 32), 32, True)),
    ("szext.wrap.u32 %r9, %r10, %r11;", 2, lambda a, n: bfe(a, 0, n & 31, 32, False)),
    ("bmsk.clamp.b32 %r9, %r10, %r11;", 2, lambda a, n: ((1 << min(n, 32)) - 1) << min(a, 32)),
    ("bmsk.wrap.b32 %r9, %r10, %r11;", 2, lambda a, n: ((1 << (n & 31)) - 1) << (a & 31)),
    ("mov.u32 %r11, WARP_SZ; add.u32 %r9, %r10, %r11;", 1, lambda a: a + 32),
    *((f"prmt.b32.{mode} %r9, %r10, %r11, %r12;", 3, lambda a, b, c, t=table: prmt(a, b, t[c & 3]))
      for mode, table in PRMT_MODES.items()),
]  # fmt: skip


@pytest.mark.parametrize(("code", "operands", "expected"), TABLE_32, ids=[t[0] for t in TABLE_32])
def test_32_bit(code: str, operands: int, expected: Function) -> None:
    rows = words(32, operands)
    if (
        "shl" in code or "shr" in code or "bfe" in code or "bfi" in code
    ):  # amounts near the width are the interesting ones
        rows = [[r[0], *(v % 70 if i >= (1 if "bfi" not in code else 2) else v for i, v in enumerate(r[1:], 1))]
                for r in rows]  # fmt: skip
    columns = [np.array([r[i] for r in rows], np.uint32) for i in range(operands)]
    got = evaluate(code, columns, np.uint32)
    for row, value in zip(rows, got.tolist(), strict=True):
        assert value == expected(*row) & M32, (code, [hex(v) for v in row])


SPLIT = "mov.b64 {%r20, %r21}, %rd10; mov.b64 {%r22, %r23}, %rd11;"
TABLE_64: list[tuple[str, int, Function]] = [
    ("add.s64 %rd9, %rd10, %rd11;", 2, lambda a, b: a + b),
    ("mul.lo.s64 %rd9, %rd10, %rd11;", 2, lambda a, b: a * b),
    ("mul.hi.u64 %rd9, %rd10, %rd11;", 2, lambda a, b: a * b >> 64),
    ("mul.hi.s64 %rd9, %rd10, %rd11;", 2, lambda a, b: signed(a, 64) * signed(b, 64) >> 64),
    ("mad.lo.s64 %rd9, %rd10, %rd11, %rd12;", 3, lambda a, b, c: a * b + c),
    ("div.s64 %rd9, %rd10, %rd11;", 2, lambda a, b: trunc_div(signed(a, 64), signed(b, 64)) if b else -1),
    ("rem.u64 %rd9, %rd10, %rd11;", 2, lambda a, b: a % b if b else -1),
    ("max.s64 %rd9, %rd10, %rd11;", 2, lambda a, b: max(signed(a, 64), signed(b, 64))),
    ("brev.b64 %rd9, %rd10;", 1, lambda a: int(f"{a:064b}"[::-1], 2)),
    ("shl.b64 %rd9, %rd10, 33;", 1, lambda a: a << 33),
    ("shr.s64 %rd9, %rd10, 63;", 1, lambda a: signed(a, 64) >> 63),
    ("shr.u64 %rd9, %rd10, 200;", 1, lambda a: 0),
    ("bfe.s64 %rd9, %rd10, 60, 4;", 1, lambda a: bfe(a, 60, 4, 64, True)),
    (
        f"{SPLIT} add.cc.u32 %r24, %r20, %r22; addc.u32 %r25, %r21, %r23; mov.b64 %rd9, {{%r24, %r25}};",
        2,
        lambda a, b: a + b,
    ),
    (
        f"{SPLIT} sub.cc.u32 %r24, %r20, %r22; subc.u32 %r25, %r21, %r23; mov.b64 %rd9, {{%r24, %r25}};",
        2,
        lambda a, b: a - b,
    ),
    (
        f"{SPLIT} mad.lo.cc.u32 %r24, %r20, %r22, %r23; madc.hi.u32 %r25, %r20, %r22, 0; mov.b64 %rd9, {{%r24, %r25}};",
        2,
        lambda a, b: (a & M32) * (b & M32) + (b >> 32),
    ),
    ("mov.b64 {%r20, %r21}, %rd10; mov.b64 %rd9, {%r21, %r20};", 1, lambda a: a >> 32 | a << 32),
]


@pytest.mark.parametrize(("code", "operands", "expected"), TABLE_64, ids=[t[0] for t in TABLE_64])
def test_64_bit(code: str, operands: int, expected: Function) -> None:
    rows = words(64, operands)
    columns = [np.array([r[i] for r in rows], np.uint64) for i in range(operands)]
    for row, value in zip(rows, evaluate(code, columns, np.uint64).tolist(), strict=True):
        assert value == expected(*row) & M64, (code, [hex(v) for v in row])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("add.s16 %rs9, %rs10, %rs11;", lambda a, b: a + b),
        ("mul.lo.s16 %rs9, %rs10, %rs11;", lambda a, b: a * b),
        ("mul.hi.s16 %rs9, %rs10, %rs11;", lambda a, b: signed(a, 16) * signed(b, 16) >> 16),
        ("min.s16 %rs9, %rs10, %rs11;", lambda a, b: min(signed(a, 16), signed(b, 16))),
        ("shr.s16 %rs9, %rs10, 3;", lambda a, b: signed(a, 16) >> 3),
        ("div.s16 %rs9, %rs10, %rs11;", lambda a, b: trunc_div(signed(a, 16), signed(b, 16)) if b else -1),
    ],
)
def test_16_bit(code: str, expected: Function) -> None:
    rows = words(16, 2)
    columns = [np.array([r[i] for r in rows], np.uint16) for i in range(2)]
    for row, value in zip(rows, evaluate(code, columns, np.uint16).tolist(), strict=True):
        assert value == expected(*row) & 0xFFFF, (code, row)


@pytest.mark.parametrize(
    ("code", "operands", "expected"),
    [
        ("mul.wide.u32 %rd9, %r10, %r11;", 2, lambda a, b: a * b),
        ("mul.wide.s32 %rd9, %r10, %r11;", 2, lambda a, b: signed(a) * signed(b)),
        ("cvt.s64.s32 %rd20, %r10; mad.wide.s32 %rd9, %r10, %r11, %rd20;", 2,
         lambda a, b: signed(a) * signed(b) + signed(a)),
        ("popc.b32 %r20, %r10; cvt.u64.u32 %rd9, %r20;", 1, lambda a: a.bit_count()),
    ],
)  # fmt: skip
def test_widening(code: str, operands: int, expected: Function) -> None:
    rows = words(32, operands)
    columns = [np.array([r[i] for r in rows], np.uint32) for i in range(operands)]
    for row, value in zip(rows, evaluate(code, columns, np.uint64).tolist(), strict=True):
        assert value == expected(*row) & M64, (code, row)


@pytest.mark.parametrize(
    ("compare", "kind", "expected"),
    [
        ("eq", "s32", lambda a, b: a == b), ("ne", "b32", lambda a, b: a != b),
        ("lt", "s32", lambda a, b: signed(a) < signed(b)), ("lt", "u32", lambda a, b: a < b),
        ("ge", "s32", lambda a, b: signed(a) >= signed(b)), ("hi", "u32", lambda a, b: a > b),
        ("ls", "u32", lambda a, b: a <= b),
    ],
)  # fmt: skip
def test_setp(compare: str, kind: str, expected: Function) -> None:
    rows = words(32, 2)
    columns = [np.array([r[i] for r in rows], np.uint32) for i in range(2)]
    got = evaluate(f"setp.{compare}.{kind} %p9, %r10, %r11;", columns, np.bool_)
    assert got.tolist() == [bool(expected(*r)) for r in rows]


def test_setp_combines_and_gives_the_complement() -> None:
    a = np.arange(64, dtype=np.uint32)
    code = "setp.lt.u32 %p1, %r10, 40; setp.gt.and.u32 %p2|%p3, %r10, 9, %p1; xor.pred %p9, %p2, %p3;"
    # p2 = a>9 & a<40, p3 = !(a>9) & a<40: exactly one holds below 40, none from there on
    assert evaluate(code, [a], np.bool_).tolist() == [v < 40 for v in range(64)]


def test_guarded_instruction_leaves_other_lanes_alone() -> None:
    a = np.arange(96, dtype=np.uint32)
    code = "mov.b32 %r9, 7; setp.lt.u32 %p1, %r10, 50; @%p1 add.s32 %r9, %r10, 1000; @!%p1 add.s32 %r9, %r9, 1;"
    assert evaluate(code, [a], np.uint32).tolist() == [v + 1000 if v < 50 else 8 for v in range(96)]
