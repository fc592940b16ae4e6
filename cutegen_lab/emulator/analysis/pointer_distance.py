"""Bounds how far an address computation may lead from its pointer. Addresses close to one base compare like their
offsets; 2^47 bytes from the base the result depends on the base, because sums wrap.

A bound is a number of bits that covers all instructions that write a register (:class:`PointerDistance`). A loop is
assumed to run fewer than 2^25 times: more would take longer than any kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.program import Written
from cutegen_lab.emulator.ptx.types import WIDTH

NEAR = 46  # in bits: drivers put tensors at higher addresses, and far below the end of 64 bits
_UNBOUNDED = 64
_LOOP = 25
_DEEPEST, _MOST_STEPS = 300, 20_000
_SMALL = {"tid": 10, "ntid": 11, "laneid": 5}
Bound = tuple[int, frozenset[str]]
"""(bits, registers in an unfinished cycle on which these depend)."""


class PointerDistance:
    def __init__(self, blocks: Sequence[Sequence[Written]]) -> None:
        self._writers: dict[str, list[ptx.Instruction]] = defaultdict(list)
        for block in blocks:
            for ins, defs in block:
                for name in defs:
                    self._writers[name].append(ins)
        self._known: dict[str, int] = {}
        self._open: set[str] = set()
        self._steps = 0

    def near(self, *operands: ptx.Operand) -> bool:
        """True if each is at most 2^:data:`NEAR` bytes from its base."""
        self._steps = 0
        return all(self._bound(operand)[0] <= NEAR for operand in operands)

    def _bound(self, operand: ptx.Operand) -> Bound:
        match operand:
            case ptx.Imm(value=value):
                signed = value - (1 << 64) if value >= 1 << 63 else value
                return abs(signed).bit_length(), frozenset()
            case ptx.Reg(name=name):
                return self._register(name)
            case ptx.Address(base=base, offset=offset):
                bits, open_ = self._bound(base)
                return _sum(bits, abs(offset).bit_length()), open_
            case ptx.Special(name=name):
                return _SMALL.get(name.lstrip("%").partition(".")[0], 32), frozenset()
            case ptx.Symbol():
                return 0, frozenset()
            case _:
                return _UNBOUNDED, frozenset()

    def _register(self, name: str) -> Bound:
        if name in self._known:
            return self._known[name], frozenset()
        if name in self._open:
            return 0, frozenset({name})
        self._steps += 1
        if len(self._open) > _DEEPEST or self._steps > _MOST_STEPS:
            return _UNBOUNDED, frozenset()
        self._open.add(name)
        each = [self._written(ins) for ins in self._writers[name]]
        self._open.remove(name)
        begins = max((bits for bits, open_ in each if name not in open_), default=0)
        grows = max((bits + _LOOP for bits, open_ in each if name in open_ and bits), default=0)
        bits = min(_sum(begins, grows), _UNBOUNDED)
        follows = frozenset[str]().union(*(open_ for _, open_ in each))
        if not (follows := follows - {name}):
            self._known[name] = bits
        return bits, follows

    def _written(self, ins: ptx.Instruction) -> Bound:
        types = [m for m in ins.mods if m in WIDTH]
        whole = 8 * WIDTH[types[0]] if types and "wide" not in ins.mods else _UNBOUNDED
        sources = [o for o in ins.operands[1:] if not isinstance(o, (ptx.Vector, ptx.Pair))]
        bits, open_ = self._computed(ins, sources, types)
        return (bits, open_) if bits < whole or whole == _UNBOUNDED else (whole, frozenset())

    def _computed(self, ins: ptx.Instruction, sources: Sequence[ptx.Operand], types: Sequence[str]) -> Bound:
        opcode, far = ins.opcode, (_UNBOUNDED, frozenset[str]())
        if opcode in ("ld", "ldu"):  # a pointer parameter, or a number
            wide = WIDTH[types[0]] == 8 and not _of_parameter(sources)
            return far if wide else (0 if WIDTH[types[0]] == 8 else 8 * WIDTH[types[0]], frozenset())
        if opcode == "cvt" and len(types) == 2 and WIDTH[types[1]] <= 4:
            bits, open_ = self._bound(sources[0])
            return min(bits, 8 * WIDTH[types[1]]), open_
        if opcode in ("mov", "cvt", "cvta", "neg") and sources:
            return self._bound(sources[0])
        if len(sources) < 2:
            return far
        a, b = self._bound(sources[0]), self._bound(sources[1])
        both = a[1] | b[1]
        if opcode in ("add", "sub"):
            return _sum(a[0], b[0]), both
        if opcode == "selp":
            return max(a[0], b[0]), both
        if opcode == "and" and isinstance(sources[1], ptx.Imm):
            return (b[0] if sources[1].value >= 0 else max(a[0], b[0]) + 1), both
        if opcode in ("or", "xor") and isinstance(sources[1], ptx.Imm):
            return max(a[0], b[0]) + 1, both
        if opcode == "shr" and not both and isinstance(sources[1], ptx.Imm):
            return a[0], both
        if both:  # grows faster than linearly in a loop
            return far
        if opcode == "shl" and isinstance(sources[1], ptx.Imm):
            return a[0] + sources[1].value, both
        if opcode == "mul" and ({"lo", "wide"} & set(ins.mods)):
            return _product(a[0], sources[1], b[0]), both
        if opcode == "mad" and ({"lo", "wide"} & set(ins.mods)):
            c = self._bound(sources[2])
            return _sum(_product(a[0], sources[1], b[0]), c[0]), c[1]
        return far


def _sum(a: int, b: int) -> int:
    return max(a, b) + 1 if a and b else a + b


def _product(a: int, operand: ptx.Operand, b: int) -> int:
    return a + (max(abs(operand.value) - 1, 0).bit_length() if isinstance(operand, ptx.Imm) else b)


def _of_parameter(sources: Sequence[ptx.Operand]) -> bool:
    return bool(sources) and isinstance(sources[0], ptx.Address) and isinstance(sources[0].base, ptx.Symbol)
