"""The opcode table, and :class:`Emit`, with which an opcode's function writes Python.

Each function in :mod:`cutegen_lab.emulator.isa` takes an :class:`Emit` for one instruction and writes the Python lines
that perform it on all lanes of a group together. It *consumes* the modifiers it supports; others are refused by name.
Accesses to registers through ``s`` and ``d`` record uses and definitions for liveness and register allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.ptx.types import FILE_OF_VIEW, NUMPY, VIEW, WIDTH
from cutegen_lab.emulator.translate.mma_product import Product


@dataclass
class Symbols:
    """Addresses of a kernel's variables and parameters, and the constants its code refers to."""

    addresses: dict[str, int] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)
    params: dict[str, int] = field(default_factory=dict)  # name -> offset in the parameter block
    constants: dict[str, Any] = field(default_factory=dict)
    sites: int = 0  # number of memory instructions so far
    flights: dict[tuple[str, ...], int] = field(default_factory=dict)  # register list of a wgmma -> its number

    def constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def in_flight(self, registers: tuple[str, ...]) -> int:
        """The number of a list of registers; a new list gets the next number."""
        return self.flights.setdefault(registers, len(self.flights))


class InFlight(NamedTuple):
    """A list of registers that a wgmma reads or writes, in order, and its number in the kernel."""

    number: int
    names: tuple[str, ...]


class Emit:
    """One instruction being translated. ``lines`` refer to registers as ``<name>``, replaced by rows later."""

    def __init__(self, instruction: ptx.Instruction, symbols: Symbols) -> None:
        self.ins, self.symbols = instruction, symbols
        self.ops = instruction.operands
        self.mods = list(instruction.mods)
        self.lines: list[str] = []
        self.uses: dict[str, ptx.Reg] = {}
        self.defs: dict[str, ptx.Reg] = {}
        self.reads: dict[str, ptx.Reg] = {}  # registers read; not destinations that keep values under a guard
        self.parks = False  # whether lanes may have to wait at this instruction
        self.meets = ""  # at a synchronisation point of a warp: the instruction that needs its lanes, in words
        self.collective = False  # whether lanes of a warp exchange values; the whole group executes it together
        self.load_bytes = 0  # bytes that a lane reads from global memory
        self.waits_loads = False  # whether earlier asynchronous copies must be complete
        self.klass = "other"  # the warp-instruction counter that it increments; empty for synchronisation points
        self.beside: Mapping[str, int] = {}  # further SASS instructions that ptxas emits for it, by class
        self.site: int | None = None  # number of the memory instruction, for its counters
        self.product: Product | None = None  # operands of an mma that may be fused
        self.joined: list[Emit] = []  # further mma that are fused into this one
        self.sums: InFlight | None = None  # accumulators of a wgmma
        self.adds = ""  # expression of scale-d: a wgmma adds to its accumulators if it is true
        self.operands: InFlight | None = None  # registers from which a wgmma reads A
        self.before: list[str] = []  # lines that run before the instruction, for every lane of the group
        self.after: list[str] = []  # lines that run after the instruction, for every lane of the group
        self.tensor_ops: tuple[str, int] | None = None  # of tensor cores: (operand type, operations per warp)

    def refuse(self, why: str) -> Unsupported:
        return Unsupported(why, self.ins.line, self.ins.text)

    # --- modifiers ---------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Consumes modifier ``name``; True if it was present."""
        if name in self.mods:
            self.mods.remove(name)
            return True
        return False

    def one_of(self, *names: str, default: str = "") -> str:
        for name in names:
            if self.has(name):
                return name
        return default

    def skip(self, *names: str) -> None:
        """Consumes modifiers that do not change values."""
        for name in names:
            self.has(name)

    def types(self) -> list[str]:
        """Consumes every type modifier, in order."""
        found = [m for m in self.mods if m in WIDTH or m == "pred"]
        self.mods = [m for m in self.mods if m not in found]
        return found

    def type(self, *allowed: str) -> str:
        """Consumes the one type modifier; refuses types that are not ``allowed``."""
        found = self.types()
        if len(found) != 1 or (allowed and found[0] not in allowed):
            raise self.refuse(f"the emulator does not execute `{self.ins.name}` with type {'.'.join(found) or 'none'}")
        return found[0]

    # --- operands ----------------------------------------------------------------------------------------------------

    def s(self, operand: ptx.Operand, kind: str) -> str:
        """Source expression: an array over lanes or a NumPy scalar, of type ``kind``'s view."""
        view = VIEW[kind]
        if isinstance(operand, ptx.Reg):
            return self._register(operand, view)
        if isinstance(operand, ptx.Not) and kind == "pred":
            return f"~{self.s(operand.operand, 'pred')}"
        if isinstance(operand, ptx.Special):
            return f"special(g,{operand.name!r},{self.constant_type(view)})"
        return self.symbols.constant(self._value(operand, view))

    def _register(self, register: ptx.Reg, view: str) -> str:
        self.uses[register.name] = register
        if register.file == FILE_OF_VIEW[view]:
            return f"{view}[<{register.name}>]"
        order = "PHUD"
        if "P" in (register.file, FILE_OF_VIEW[view]) or order.index(register.file) < order.index(FILE_OF_VIEW[view]):
            raise self.refuse(f"register {register.name} is too narrow for `{self.ins.name}`")
        narrowed = f"{register.file}[<{register.name}>].astype({self.constant_type(FILE_OF_VIEW[view])})"
        return narrowed if view == FILE_OF_VIEW[view] else f"{narrowed}.view({self.constant_type(view)})"

    def constant_type(self, view: str) -> str:
        return {"P": "bool", "H": "u16", "I": "i16", "E": "f16", "U": "u32", "S": "i32", "F": "f32", "D": "u64",
                "L": "i64", "G": "f64"}[view]  # fmt: skip

    def _value(self, operand: ptx.Operand, view: str) -> Any:
        kind = NUMPY[view]
        if isinstance(operand, ptx.FloatImm):
            raw = np.uint32(operand.bits) if operand.width == 32 else np.uint64(operand.bits)
            number = raw.view(np.float32 if operand.width == 32 else np.float64)
            if view in "FGE":
                return kind(number)
            if np.dtype(kind).itemsize * 8 == operand.width:
                return raw.view(kind)
        elif isinstance(operand, ptx.Imm):
            if view == "P":
                return np.bool_(operand.value)
            bits = np.dtype(kind).itemsize * 8
            unsigned = np.array(operand.value % (1 << bits), f"u{bits // 8}")
            return unsigned.view(kind)[()] if view not in "FG" else kind(operand.value)
        elif isinstance(operand, ptx.Symbol):
            return kind(32 if operand.name == "WARP_SZ" else self.address_of(operand.name))
        raise self.refuse(f"the emulator does not support operand {operand} of `{self.ins.name}`")

    def address_of(self, name: str) -> int:
        if name in self.symbols.addresses:
            return self.symbols.addresses[name]
        raise self.refuse(f"name {name} is not a variable of this kernel")

    def d(self, operand: ptx.Operand, kind: str) -> str:
        """Destination: an array over lanes to be filled in place."""
        if not isinstance(operand, ptx.Reg):
            raise self.refuse(f"destination {operand} of `{self.ins.name}` is not a register")
        view = VIEW[kind]
        self.defs[operand.name] = operand
        if operand.file != FILE_OF_VIEW[view]:
            raise self.refuse(f"register {operand.name} has another width than `{self.ins.name}` writes")
        return f"{view}[<{operand.name}>]"

    def d_wide(self, operand: ptx.Operand, kind: str) -> tuple[str, str]:
        """Destination of a load or conversion, which may be wider than ``kind``: (expression, its view)."""
        if not isinstance(operand, ptx.Reg):
            raise self.refuse(f"destination {operand} of `{self.ins.name}` is not a register")
        signed = kind.startswith("s")
        view = {"P": "P", "H": "I" if signed else "H", "U": "S" if signed else "U", "D": "L" if signed else "D"}
        if kind == "f16" and operand.file == "H":
            chosen = "E"
        elif kind == "f32" and operand.file == "U":
            chosen = "F"
        elif kind == "f64":
            chosen = "G"
        else:
            chosen = view[operand.file]
        self.defs[operand.name] = operand
        return f"{chosen}[<{operand.name}>]", chosen

    def row(self, operand: ptx.Operand, kind: str, *, writes: bool = False) -> str:
        """The row of a register, for opcodes that take many registers."""
        if not isinstance(operand, ptx.Reg) or operand.file != FILE_OF_VIEW[VIEW[kind]]:
            raise self.refuse(f"the emulator does not support operand {operand} of `{self.ins.name}`")
        (self.defs if writes else self.uses)[operand.name] = operand
        return f"<{operand.name}>"

    def const(self, value: Any) -> str:
        return self.symbols.constant(value)

    def address(self, operand: ptx.Operand) -> tuple[str, int]:
        """(expression of the base, byte offset) of ``[a+n]``; a base that is a symbol becomes a constant."""
        if not isinstance(operand, ptx.Address):
            raise self.refuse(f"the emulator does not support address {operand} of `{self.ins.name}`")
        base = operand.base
        if isinstance(base, ptx.Reg):
            return self.s(base, "b64" if base.file == "D" else "b32"), operand.offset
        if isinstance(base, ptx.Imm):
            return self.const(np.uint64(base.value)), operand.offset
        if isinstance(base, ptx.Symbol):
            return self.const(np.uint64(self.address_of(base.name))), operand.offset
        raise self.refuse(f"the emulator does not support address {operand} of `{self.ins.name}`")

    def items(self, operand: ptx.Operand) -> tuple[ptx.Operand, ...]:
        """Elements of ``{a, b}``, or the operand alone."""
        return operand.items if isinstance(operand, ptx.Vector) else (operand,)

    def same(self, a: ptx.Operand, b: ptx.Operand) -> bool:
        return isinstance(a, ptx.Reg) and isinstance(b, ptx.Reg) and a.name == b.name

    def line(self, text: str) -> None:
        self.lines.append(text)

    def put(self, index: int, kind: str, expression: str) -> None:
        """``operand[index] = expression``, converting as NumPy assigns."""
        self.line(f"{self.d(self.ops[index], kind)}[:]={expression}")


OpcodeFunction = Callable[[Emit], None]
OPCODES: dict[str, OpcodeFunction] = {}


def opcode(*names: str) -> Callable[[OpcodeFunction], OpcodeFunction]:
    """Registers a function, which takes the :class:`Emit` of one instruction, for opcodes (the part before the first
    dot)."""

    def register(function: OpcodeFunction) -> OpcodeFunction:
        OPCODES.update(dict.fromkeys(names, function))
        return function

    return register
