"""PTX text to typed instructions (PTX ISA, chapters 4 "Syntax" and 5 "State Spaces, Types, and Variables").

Names are resolved here: inline assembly opens scopes whose labels and registers repeat, so each gets a unique name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.types import FILE_OF_TYPE, WIDTH


@dataclass(frozen=True)
class Reg:
    """A virtual register. ``file`` is its register file: P predicate, H 16, U 32, D 64 bits a lane."""

    name: str
    file: str


@dataclass(frozen=True)
class Imm:
    value: int


@dataclass(frozen=True)
class FloatImm:
    """``0fXXXXXXXX`` (32) or ``0dXXXXXXXXXXXXXXXX`` (64): exact bits."""

    bits: int
    width: int


@dataclass(frozen=True)
class Symbol:
    """A label, a parameter or a variable in shared, local, const or global space."""

    name: str


@dataclass(frozen=True)
class Special:
    """``%tid.x``, ``%laneid`` …"""

    name: str


@dataclass(frozen=True)
class Address:
    base: Operand
    offset: int = 0


@dataclass(frozen=True)
class TensorAddress:
    """``[map, {c0, c1}]``: a tensor map and coordinates in its tensor, innermost dimension first."""

    base: Operand
    coordinates: tuple[Operand, ...]


@dataclass(frozen=True)
class Vector:
    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """``d|p``: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Not:
    """``!p``."""

    operand: Operand


@dataclass(frozen=True)
class Sink:
    """``_``: a result nobody wants."""


@dataclass(frozen=True)
class Other:
    """An operand form no opcode here takes: kept as text to be named when refused."""

    text: str


Operand = Reg | Imm | FloatImm | Symbol | Special | Address | TensorAddress | Vector | Pair | Not | Sink | Other


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``opcode`` is the part before the first dot, ``mods`` the rest; ``line`` is the PTX line."""

    opcode: str
    mods: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Reg | None
    negated: bool
    text: str
    line: int

    @property
    def name(self) -> str:
        return ".".join((self.opcode, *self.mods))


@dataclass(frozen=True)
class Variable:
    """A named range of bytes in a state space. ``initial`` is empty unless the PTX gives initial values."""

    name: str
    space: str
    align: int
    size: int
    initial: bytes = b""


@dataclass(frozen=True)
class Kernel:
    """One ``.entry``: its parameters as (name, bytes), variables, code, and labels as instruction indices."""

    name: str
    params: tuple[tuple[str, int], ...]
    variables: tuple[Variable, ...]
    code: tuple[Instruction, ...]
    labels: dict[str, int]
    line: int


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_ENTRY = re.compile(r"(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)\s*(?:\((.*?)\))?([^{;]*)\{", re.S)
_LABEL = re.compile(r"([\w$]+)\s*:(?!:)")
_LINE_DIRECTIVE = re.compile(r"\.(?:loc|file|section)\b[^\n]*")
_VARIABLE = re.compile(
    r"\.(shared|local|const|global)\s+((?:\.align\s+\d+\s+)?)\.(\w+)\s+([\w$]+)\s*((?:\[\d*\])*)\s*(?:=\s*(.*))?$", re.S
)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$", re.S)
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?$")


def kernels(text: str) -> dict[str, Kernel]:
    """Every ``.entry`` of a PTX module by name. Raises :class:`Unsupported` naming the line that cannot be read."""
    clean = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    found = list(_ENTRY.finditer(clean))
    outside = clean
    bodies = []
    for match in found:
        end = _matching_brace(clean, match.end() - 1)
        bodies.append((match, end))
        outside = outside[: match.start()] + re.sub(r"[^\n]", " ", clean[match.start() : end]) + outside[end:]
    if function := re.search(r"\.func\b", outside):
        raise Unsupported("a .func definition is not executed here: only kernels", _line(clean, function.start()))
    module = [v for v in (_variable(s.strip()) for s in outside.split(";")) if v]
    return {m[1]: _Reader(clean, m, end, module).kernel() for m, end in bodies}


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _matching_brace(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    raise Unsupported("the PTX ends inside a brace", _line(text, at))


def _variable(statement: str) -> Variable | None:
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
        raise Unsupported(f"variable {name} has element type .{kind}")
    initial = b""
    if values:
        numbers = [int(v, 0) for v in re.findall(r"-?(?:0x[0-9a-fA-F]+|\d+)", values)]
        initial = b"".join((n % (1 << 8 * step)).to_bytes(step, "little") for n in numbers)
    return Variable(name, space, int(align.split()[1]) if align else step, max(count * step, len(initial)), initial)


@dataclass
class _Scope:
    labels: dict[str, str]
    registers: dict[str, Reg] = field(default_factory=dict)
    ranges: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Reads one kernel's body."""

    def __init__(self, text: str, entry: re.Match[str], end: int, module: list[Variable]) -> None:
        self._text, self._entry, self._end = text, entry, end
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        self._scopes: list[_Scope] = []
        self._opened = 0
        self._variables = list(module)
        self._code: list[Instruction] = []
        self._labels: dict[str, int] = {}

    def kernel(self) -> Kernel:
        for statement, at in self._statements():
            self._statement(statement, at)
        return Kernel(
            self._entry[1], tuple(self._params()), tuple(self._variables), tuple(self._code), self._labels,
            self._at(self._entry.start(1)),
        )  # fmt: skip

    def _at(self, position: int) -> int:
        return bisect_right(self._newlines, position - 1) + 1

    def _params(self) -> Iterator[tuple[str, int]]:
        for declared in filter(None, (p.strip() for p in (self._entry[2] or "").split(","))):
            match = re.match(
                r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s.*?)?([\w$]+)(?:\[(\d+)\])?$", declared
            )
            if not match or match[1] not in WIDTH:
                raise Unsupported(f"parameter {declared!r} is not read here", self._at(self._entry.start(2)))
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
            elif match := _LINE_DIRECTIVE.match(text, i):
                i = match.end()
            elif match := _LABEL.match(text, i):
                self._labels[self._label(match[1])] = len(self._code)
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

    def _label(self, name: str) -> str:
        return next((s.labels[name] for s in reversed(self._scopes) if name in s.labels), name)

    def _statement(self, text: str, at: int) -> None:
        line = self._at(at)
        if text.startswith(".reg"):
            self._declare(text, line)
        elif text.startswith("."):
            variable = _variable(text)
            if variable:
                self._variables.append(variable)
            elif not text.startswith((".pragma", ".callprototype", ".branchtargets")):
                raise Unsupported(f"directive `{text.split()[0]}` is not known here", line, text)
        else:
            self._code.append(self._instruction(text, line))

    def _declare(self, text: str, line: int) -> None:
        match = _REGISTERS.match(text)
        if not match or match[1] not in FILE_OF_TYPE:
            raise Unsupported(f"registers declared by `{text}` are not held here", line, text)
        scope = self._scopes[-1]
        for name in (n.strip() for n in match[2].split(",")):
            if many := re.match(r"(.*)<(\d+)>$", name):
                scope.ranges[many[1]] = FILE_OF_TYPE[match[1]]
            else:
                unique = f"{name}@{len(self._code)}.{len(self._scopes)}" if len(self._scopes) > 1 else name
                scope.registers[name] = Reg(unique, FILE_OF_TYPE[match[1]])

    def _register(self, name: str) -> Reg | None:
        for scope in reversed(self._scopes):
            if name in scope.registers:
                return scope.registers[name]
            prefix = name.rstrip("0123456789")
            if prefix != name and prefix in scope.ranges:
                scope.registers[name] = Reg(name, scope.ranges[prefix])
                return scope.registers[name]
        return None

    def _instruction(self, text: str, line: int) -> Instruction:
        shown = " ".join(text.split())
        guard, negated = None, False
        if match := re.match(r"@(!?)\s*([%\w$]+)\s+", text):
            guard, negated, text = self._register(match[2]), bool(match[1]), text[match.end() :]
            if guard is None:
                raise Unsupported(f"guard {match[2]} is not a declared predicate", line, shown)
        head, _, rest = text.partition(" ") if "\t" not in text.split(" ", 1)[0] else text.partition("\t")
        opcode, *mods = head.strip().split(".")
        operands = tuple(self._operand(o, line) for o in split_operands(rest))
        return Instruction(opcode, tuple(mods), operands, guard, negated, shown, line)

    def _operand(self, text: str, line: int) -> Operand:
        if text == "_":
            return Sink()
        if text.startswith("!"):
            return Not(self._operand(text[1:].strip(), line))
        if text.startswith("{") and text.endswith("}"):
            return Vector(tuple(self._operand(t, line) for t in split_operands(text[1:-1])))
        if text.startswith("["):
            return self._address(text, line)
        if "|" in text:
            first, second = (self._operand(t.strip(), line) for t in text.split("|"))
            return Pair(first, second)
        if register := self._register(text):
            return register
        if text.startswith("%"):
            return Special(text)
        if match := re.match(r"0([fFdD])([0-9a-fA-F]+)$", text):
            return FloatImm(int(match[2], 16), 32 if match[1] in "fF" else 64)
        if _INTEGER.match(text):
            digits = text.rstrip("U")
            octal = re.match(r"-?0[0-7]+$", digits)
            return Imm(int(digits, 8 if octal else 0))
        if re.match(r"[\w$]+$", text):
            return Symbol(self._label(text))
        return Other(text)

    def _address(self, text: str, line: int) -> Operand:
        if match := re.match(r"\[\s*([%\w$]+)\s*,\s*\{([^{}]*)\}\s*\]$", text):
            coordinates = tuple(self._operand(c, line) for c in split_operands(match[2]))
            return TensorAddress(self._operand(match[1], line), coordinates)
        match = re.match(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]$", text)
        if not match:
            return Other(text)
        return Address(self._operand(match[1], line), int(match[2] or "0", 0))


def split_operands(text: str) -> list[str]:
    """Splits at commas that are not inside brackets or braces."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() else parts
