"""One instruction and the tags of its registers, for the rules of :mod:`origin_rules`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.ptx.traits import registers
from cutegen_lab.emulator.translate.emit import Emit

MOST_SITES = 0xFFFF
NONE = "u32(0)"
EFFECTS = {
    "atom": "an atomic operation", "red": "an atomic operation", "cp": "a copy", "bar": "a barrier",
    "barrier": "a barrier", "mbarrier": "an mbarrier", "call": "a call",
}  # fmt: skip
"""Instructions with an effect beyond their destination registers."""
_CHECKS = ("g.ctas.require_", "require_full", "check_members")  # prefixes of checks that stay in front of added lines


class Site(NamedTuple):
    """An instruction that may read an uninitialised value: of ``register``, or of memory if that is empty."""

    instruction: ptx.Instruction
    register: str


def number(sites: list[Site], site: Site) -> int:
    if len(sites) < MOST_SITES - 1:
        sites.append(site)
    return len(sites)


def tag_of(register: ptx.Reg) -> ptx.Reg:
    return ptx.Reg(f"{register.name}~", "U")


class Tagged:
    """One instruction with added lines: ``early`` before its own, ``late`` after them."""

    def __init__(self, emit: Emit, fresh: set[str], sites: list[Site]) -> None:
        self.emit, self._fresh, self._sites = emit, fresh, sites
        self.reads, self.defs = list(emit.reads.values()), list(emit.defs.values())
        self.early: list[str] = []
        self.late: list[str] = []

    def finish(self) -> None:
        """Adds the lines to the instruction, and the tags to its uses and definitions."""
        emit = self.emit
        self._guarded()
        keeps = emit.ins.guard is not None or emit.parks  # guarded-off or waiting lanes keep their tags
        for register in (*self.reads, *(self.defs if keeps else ())):
            emit.uses[tag_of(register).name] = tag_of(register)
        for register in (*self.defs, *(r for r in self.reads if r.name in self._fresh)):
            emit.defs[tag_of(register).name] = tag_of(register)
        at = 1 if emit.collective and emit.lines and emit.lines[0].startswith(_CHECKS) else 0
        if emit.parks:
            emit.lines[:0] = self.early + self.late
        else:
            emit.lines[at:at] = self.early
            emit.lines += self.late

    def most(self, registers: Sequence[ptx.Reg]) -> str:
        """The largest tag of several registers, by half."""
        found = [f"U[<{tag_of(register).name}>]" for register in registers]
        return f"most({','.join(found)})" if len(found) > 1 else found[0] if found else NONE

    def all(self) -> str:
        """The tag of a result that depends on all registers read."""
        return f"spread({self.most(self.reads)})" if self.reads else NONE

    def of(self, operand: ptx.Operand) -> str:
        return self.most(list(registers(operand)))

    def rows(self, operands: Iterable[ptx.Operand]) -> str:
        return "(" + "".join(f"<{tag_of(r).name}>," for operand in operands for r in registers(operand)) + ")"

    def matters(self, tags: str, depends: str) -> None:
        if tags != NONE:
            self.early.append(f"matters(g,{tags},{depends + ' depends on this value'!r})")

    def site(self, register: str = "") -> int:
        return number(self._sites, Site(self.emit.ins, register))

    def give(self, value: str) -> None:
        """Gives every destination the tag ``value``."""
        for register in self.defs:
            tag = f"U[<{tag_of(register).name}>]"
            self.early.append(f"{tag}[:]={value}")
            value = tag

    def first_reads(self) -> None:
        sums = set(self.emit.sums.names) if self.emit.sums else set[str]()
        for register in self.reads:
            if register.name in self._fresh and register.name not in sums:
                tag = f"U[<{tag_of(register).name}>]"
                self.early.append(f"first_read(g,{tag},{self.site(register.name)},{register.name!r})")

    def _guarded(self) -> None:
        guard = self.emit.ins.guard
        if guard is None:
            return
        tag = tag_of(guard)
        self.emit.uses[tag.name] = tag
        if guard.name in self._fresh:
            site = self.site(guard.name)
            self.emit.before.append(f"first_read(g,U[<{tag.name}>],{site},{guard.name!r})")
            self.emit.defs[tag.name] = tag
        if self.emit.ins.opcode in EFFECTS or not self.defs:
            self.emit.before.append(f"matters(g,U[<{tag.name}>],'whether this happens depends on this value')")
        for register in self.defs:
            name = tag_of(register).name
            self.emit.after.append(f"U[<{name}>][:]=most(U[<{name}>],U[<{tag.name}>])")

    def passes_arguments(self) -> bool:
        return any(isinstance(register, ptx.Argument) for register in (*self.reads, *self.defs))
