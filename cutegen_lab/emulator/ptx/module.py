"""Parses kernels: directives, scopes, labels and variables (PTX ISA, chapters 4.3 "Statements", 5.4 "Variables",
11 "Directives").

This module resolves names: scopes of inline assembly repeat labels and registers, so each gets a unique name.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cutegen_lab.core import ptx_text
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.ptx import used_bytes
from cutegen_lab.emulator.ptx.instruction import read as read_instruction
from cutegen_lab.emulator.ptx.types import FILE_OF_TYPE, WIDTH

_ENTRY = re.compile(r"(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)\s*(?:\((.*?)\))?([^{;]*)\{", re.S)
_LABEL = re.compile(r"([\w$]+)\s*:(?!:)")
_VARIABLE = re.compile(
    r"\.(shared|local|const|global)\s+((?:\.align\s+\d+\s+)?)\.(\w+)\s+([\w$]+)\s*((?:\[\d*\])*)\s*(?:=\s*(.*))?$", re.S
)
_NUMBER = re.compile(r"-?0[xX][0-9a-fA-F]+\b|0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|-?\b\d+\b")
_ARGUMENT = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+([\w$]+)$")
_EXTERNAL = re.compile(r"\.extern\s+\.func\b[^;{]*;", re.S)
_REGISTERS = re.compile(r"\.reg\s+(?:\.v([24])\s+)?\.(\w+)\s+(.*)$", re.S)


def kernels(text: str) -> dict[str, ptx.Kernel]:
    """Every ``.entry`` of a PTX module by name. Raises :class:`Unsupported` naming the line that cannot be read."""
    try:
        read = ptx_text.read(text)
    except ptx_text.PtxError as error:
        raise Unsupported(str(error), error.line) from None
    clean = read.code
    found = list(_ENTRY.finditer(clean))
    outside = clean
    bodies = []
    for match in found:
        end = _matching_brace(clean, match.end() - 1)
        bodies.append((match, end))
        outside = outside[: match.start()] + re.sub(r"[^\n]", " ", clean[match.start() : end]) + outside[end:]
    outside = _EXTERNAL.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), outside)
    if function := re.search(r"\.func\b", outside):
        raise Unsupported("the emulator executes only kernels, not a .func definition", _line(clean, function.start()))
    module = [v for v in (_variable(s.strip()) for s in outside.split(";")) if v]
    return {m[1]: _Reader(clean, m, end, module, read.used_bytes).kernel() for m, end in bodies}


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _matching_brace(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    raise Unsupported("the PTX ends inside a brace", _line(text, at))


def _bits(number: str) -> int:
    return int(number[2:], 16) if number[1:2] in ("f", "F", "d", "D") else int(number, 0)


def _variable(statement: str) -> ptx.Variable | None:
    start = re.search(r"\.(shared|local|const|global)\s", statement)
    match = _VARIABLE.match(statement[start.start() :]) if start else None
    if not match:
        return None
    space, align, kind, name, dims, values = match.groups()
    count = 1
    for dim in re.findall(r"\[(\d*)\]", dims):
        count *= int(dim or 0)
    step = WIDTH.get(kind)
    if step is None:
        raise Unsupported(f"the emulator does not support variable {name} of element type .{kind}")
    initial = b""
    if values:
        if _NUMBER.sub("", values).strip(" \t\n{},"):  # usually an address
            raise Unsupported(f"the emulator does not support initial values of variable {name} that are not numbers")
        numbers = [_bits(number) for number in _NUMBER.findall(values)]
        initial = b"".join((n % (1 << 8 * step)).to_bytes(step, "little") for n in numbers)
    return ptx.Variable(name, space, int(align.split()[1]) if align else step, max(count * step, len(initial)), initial)


@dataclass
class _Scope:
    labels: dict[str, str]
    registers: dict[str, ptx.Reg] = field(default_factory=dict)
    ranges: dict[str, str] = field(default_factory=dict)
    vectors: dict[str, ptx.Vector] = field(default_factory=dict)


class _Reader:
    """Reads one kernel's body."""

    def __init__(
        self, text: str, entry: re.Match[str], end: int, module: list[ptx.Variable], masks: Sequence[tuple[int, int]]
    ) -> None:
        self._text, self._entry, self._end = text, entry, end
        # (offset in the text, mask of used bytes)
        self._masks = [mask for mask in masks if entry.end() <= mask[0] < end]
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        self._scopes: list[_Scope] = []
        self._opened = 0
        self._variables = list(module)
        self._code: list[ptx.Instruction] = []
        self._labels: dict[str, int] = {}

    def kernel(self) -> ptx.Kernel:
        for statement, at in self._statements():
            self._statement(statement, at)
        return ptx.Kernel(
            self._entry[1], tuple(self._params()), tuple(self._variables), tuple(self._code), self._labels,
            self._at(self._entry.start(1)), self._sizes("reqntid"),
            math.prod(sizes) if (sizes := self._sizes("maxntid")) else None, self._sizes("reqnctapercluster"),
        )  # fmt: skip

    def _sizes(self, directive: str) -> tuple[int, int, int] | None:
        """The numbers of a performance-tuning directive (PTX ISA 11.4); missing ones are 1."""
        match = re.search(rf"\.{directive}\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", self._entry[3])
        return (int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None

    def _at(self, position: int) -> int:
        return bisect_right(self._newlines, position - 1) + 1

    def _params(self) -> Iterator[tuple[str, int]]:
        for declared in filter(None, (p.strip() for p in (self._entry[2] or "").split(","))):
            match = re.match(
                r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s.*?)?([\w$]+)(?:\[(\d+)\])?$", declared
            )
            if not match or match[1] not in WIDTH:
                raise Unsupported(f"parameter {declared!r} is not supported", self._at(self._entry.start(2)))
            yield match[2], WIDTH[match[1]] * int(match[3] or 1)

    def _statements(self) -> Iterator[tuple[str, int]]:
        """Instructions and declarations without their semicolons; scopes and labels are handled on the way."""
        text, i = self._text, self._entry.end()
        self._open(i)
        while i < self._end - 1:
            if text[i].isspace() or text[i] == ";":
                i += 1
            elif text[i] == "{":
                i += 1
                self._open(i)
            elif text[i] == "}":
                self._scopes.pop()
                i += 1
            elif match := _LABEL.match(text, i):
                self._labels[self.label(match[1])] = len(self._code)
                i = match.end()
            else:
                stop = text.find(";", i, self._end)
                if stop < 0:
                    raise Unsupported("an instruction has no semicolon", self._at(i))
                yield text[i:stop].strip(), i
                i = stop + 1

    def _open(self, at: int) -> None:
        inner = self._text[at : _matching_brace(self._text, at - 1) - 1] if self._scopes else ""
        names = re.findall(r"(?:^|[;{}\n])\s*([\w$]+)\s*:(?!:)", inner)
        self._scopes.append(_Scope({n: f"{n}@{self._opened}" for n in names}))
        self._opened += 1

    def label(self, name: str) -> str:
        return next((s.labels[name] for s in reversed(self._scopes) if name in s.labels), name)

    def _statement(self, text: str, at: int) -> None:
        line = self._at(at)
        if text.startswith(".reg"):
            self._declare(text, line)
        elif text.startswith(".param"):
            self._argument(text, line)
        elif text.startswith("."):
            variable = _variable(text)
            if variable:
                self._variables.append(variable)
            elif not text.startswith((".callprototype", ".branchtargets")):
                raise Unsupported(f"the emulator does not support directive `{text.split()[0]}`", line, text)
        else:
            instruction = read_instruction(text, line, self)
            mask = ~0
            while self._masks and self._masks[0][0] < at:
                mask &= self._masks.pop(0)[1]
            self._code += [instruction] if mask == ~0 else used_bytes.masked(instruction, mask)

    def _declare(self, text: str, line: int) -> None:
        match = _REGISTERS.match(text)
        if not match or match[2] not in FILE_OF_TYPE:
            raise Unsupported(f"the register declaration `{text}` is not supported", line, text)
        scope, file = self._scopes[-1], FILE_OF_TYPE[match[2]]
        for name in (n.strip() for n in match[3].split(",")):
            unique = f"{name}@{len(self._code)}.{len(self._scopes)}" if len(self._scopes) > 1 else name
            if many := re.match(r"(.*)<(\d+)>$", name):
                scope.ranges[many[1]] = file
            elif match[1]:  # PTX ISA 5.4.2 "Vectors": components have two names each
                items = tuple(ptx.Reg(f"{unique}.{i}", file) for i in range(int(match[1])))
                scope.vectors[name] = ptx.Vector(items)
                for letters in ("xyzw", "rgba"):
                    scope.registers |= {f"{name}.{a}": item for a, item in zip(letters, items, strict=False)}
            else:
                scope.registers[name] = ptx.Reg(unique, file)

    def _argument(self, text: str, line: int) -> None:
        match = _ARGUMENT.match(text)
        if not match or FILE_OF_TYPE.get(match[1]) not in ("U", "D"):
            raise Unsupported(f"the argument declaration `{text}` is not supported", line, text)
        kind, name = match.groups()
        unique = f"{name}@{len(self._code)}.{len(self._scopes)}"
        self._scopes[-1].registers[name] = ptx.Argument(unique, FILE_OF_TYPE[kind])

    def register(self, name: str) -> ptx.Reg | None:
        for scope in reversed(self._scopes):
            if name in scope.registers:
                return scope.registers[name]
            prefix = name.rstrip("0123456789")
            if prefix != name and prefix in scope.ranges:
                scope.registers[name] = ptx.Reg(name, scope.ranges[prefix])
                return scope.registers[name]
        return None

    def vector(self, name: str) -> ptx.Vector | None:
        return next((s.vectors[name] for s in reversed(self._scopes) if name in s.vectors), None)
