"""PTX as data: operands, instructions, variables, kernels (PTX ISA, chapters 4 "Syntax" and 5 "State Spaces, Types, and
Variables"). :mod:`module` and :mod:`instruction` read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reg:
    """A virtual register. ``file`` is its register file: P predicate, H 16, U 32, D 64 bits per lane."""

    name: str
    file: str


@dataclass(frozen=True)
class Argument(Reg):
    """A ``.param`` declared in a body: what a call passes or returns, held as a register (PTX ISA 5.1.6.4)."""


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
    """A special register: ``%tid.x``, ``%laneid`` …"""

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
    """``!p``: a negated predicate."""

    operand: Operand


@dataclass(frozen=True)
class Sink:
    """``_``: a result that is discarded."""


@dataclass(frozen=True)
class Other:
    """A form of operand that the emulator does not support, kept as text for the error message."""

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
    threads: tuple[int, int, int] | None = None  # .reqntid: a block must have exactly this shape
    most_threads: int | None = None  # .maxntid
    cluster: tuple[int, int, int] | None = None  # .reqnctapercluster
