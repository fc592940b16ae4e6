"""Refuses kernels that use addresses for anything but memory accesses: results would depend on where tensors are.

A kernel that looks at the bits of a pointer can tell the check from the timed run, or this emulator from a GPU. So
values are tracked from the kernel's pointers (:mod:`address_flow`), over all paths together. A memory access may use an
address, and the difference of two addresses in one tensor is a plain number. A branch, an address or a stored value
that depends on an address in any other way is refused. The same holds for values that hardware is free to choose: cache
policies, mbarrier states, and base addresses of shared and local memory and of other blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.artifact import Launch
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.analysis import provenance as of
from cutegen_lab.emulator.analysis.address_flow import MAP, MODULE, POLICY, STATE, AddressFlow
from cutegen_lab.emulator.analysis.provenance import Forms
from cutegen_lab.emulator.program import Program
from cutegen_lab.emulator.ptx.traits import registers

_EFFECTS = {
    "st": "what it stores", "stmatrix": "what it stores", "atom": "an atomic operand", "red": "an atomic operand",
    "cp": "a copy", "bar": "a barrier", "barrier": "a barrier", "mbarrier": "an mbarrier", "tensormap": "a tensor map",
    "wgmma": "a product", "nanosleep": "how long it sleeps",
}  # fmt: skip
"""Instructions with an effect, whose operands must not depend on addresses."""
_READS_PARAMETERS = ("ld", "ldu", "prefetch", "fence")  # instructions whose result is tracked, or that have none
_WRITES = ("st", "red")
_CHANGES = {"st": 0, "red": 0, "stmatrix": 0, "cp": 0, "atom": 1}  # index of the operand that is the address
_STATE = "a value that the kernel writes to a module variable"
_NONCOHERENT = "what a non-coherent load gives"
_KEPT = 64


@dataclass(frozen=True)
class AddressUse:
    """``message``: the value, in words. ``bases``: those on which it depends, tensors as ``#`` and their number."""

    message: str
    bases: tuple[str, ...]
    instruction: ptx.Instruction

    def text(self, tensors: Sequence[str]) -> str:
        said = [f"the address of {tensors[int(b[1:])]}" for b in self.bases if b[0] == "#"]
        if self.message == _STATE:
            return f"{_STATE} is still there at the next launch: keep it in a tensor that workspace() declares"
        said = said or [b.lstrip("~") for b in self.bases]
        if self.message == _NONCOHERENT:
            return (
                f"a load by .nc of {said[0].removeprefix('the address of ')}, which the same kernel writes to, may "
                "return old values. Load without .nc what the kernel also writes"
            )
        return (
            f"{self.message} depends on {', '.join(said[:3]) or 'an address'}: an answer may not depend on where "
            "tensors lie. Use pointers to reach memory, and shapes and indices for all else"
        )


_cache: OrderedDict[tuple[str, str, tuple[tuple[int, int, int], ...]], AddressUse | None] = OrderedDict()


def objection(program: Program, launch: Launch) -> AddressUse | None:
    """The first use of an address that is not allowed, or None; cached by kernel and pointers."""
    pointers = tuple((r.param, r.offset, r.tensor) for r in launch.relocations)
    key = (program.digest, program.name, pointers)
    if key not in _cache:
        flow = AddressFlow(program, pointers)
        wrong = next((found for ins, defs in flow.walk() if (found := _misuse(flow, ins, defs))), None) or _stale(flow)
        _cache[key] = wrong and replace(wrong, bases=wrong.bases or tuple(flow.blamed(wrong.instruction)))
        while len(_cache) > _KEPT:
            _cache.popitem(last=False)
    return _cache[key]


def _misuse(flow: AddressFlow, ins: ptx.Instruction, defs: frozenset[str]) -> AddressUse | None:
    if ins.guard is not None and not of.is_plain(forms := flow.value(ins.guard)):
        return _found("whether this instruction runs" if ins.opcode != "bra" else "a branch", forms, ins)
    if ins.opcode == "call" or any(isinstance(r, ptx.Argument) for o in ins.operands for r in registers(o)):
        return None  # a call of vprintf: no kernel that prints passes
    if _outlives(flow, ins):
        return AddressUse(_STATE, (), ins)
    for operand in ins.operands:
        match operand:
            case ptx.Address(base=base):
                found = _address(flow, ins, base, ins.opcode in _READS_PARAMETERS)
            case ptx.TensorAddress(base=base, coordinates=coordinates):
                found = _address(flow, ins, base, True) or _numbers(flow, ins, coordinates)
            case _ if ins.opcode in _EFFECTS and not {r.name for r in registers(operand)} & defs:
                found = _value(flow, ins, operand)
            case _:
                found = None
        if found:
            return found
    return None


def _stale(flow: AddressFlow) -> AddressUse | None:
    """A load through the non-coherent cache from a tensor that the kernel writes to (PTX ISA 9.7.9.9). Hardware may
    return the old value; the emulator never does."""
    written, loaded = set[str](), list[tuple[set[str], ptx.Instruction]]()
    for ins, _ in flow.walk():
        if ins.opcode in _WRITES:
            written |= of.names(flow.value(ins.operands[0]))
        elif ins.opcode == "ldu" or (ins.opcode == "ld" and "nc" in ins.mods):
            loaded.append(({name for name in of.names(flow.value(ins.operands[1])) if name[0] == "#"}, ins))
    return next((AddressUse(_NONCOHERENT, tuple(sorted(b & written)), ins) for b, ins in loaded if b & written), None)


def _outlives(flow: AddressFlow, ins: ptx.Instruction) -> bool:
    at = _CHANGES.get(ins.opcode)
    operand = ins.operands[at] if at is not None and at < len(ins.operands) else None
    if not isinstance(operand, ptx.Address):  # the result is not used
        operand = next((o for o in ins.operands if isinstance(o, ptx.Address)), None) if at is not None else None
    return operand is not None and any(name.startswith(MODULE) for name in of.names(flow.value(operand)))


def _address(flow: AddressFlow, ins: ptx.Instruction, base: ptx.Operand, parameters: bool) -> AddressUse | None:
    forms = flow.value(base)
    good = of.is_address(forms) and (parameters or not flow.reaches_pointers(forms))
    return None if good else _found("an address", forms, ins)


def _numbers(flow: AddressFlow, ins: ptx.Instruction, operands: Sequence[ptx.Operand]) -> AddressUse | None:
    bad = (forms for operand in operands if not of.is_plain(forms := flow.value(operand)))
    return next((_found("a coordinate", forms, ins) for forms in bad), None)


def _value(flow: AddressFlow, ins: ptx.Instruction, operand: ptx.Operand) -> AddressUse | None:
    """Checks a non-address operand of an instruction with an effect."""
    forms = flow.value(operand)
    good = (
        of.is_plain(forms)
        or ("L2::cache_hint" in ins.mods and operand is ins.operands[-1] and of.is_opaque(forms, POLICY))
        or (ins.opcode == "mbarrier" and of.is_opaque(forms, STATE))
        or (ins.opcode == "tensormap" and of.is_address(forms))
        # The store copies a map, to change it.
        or (ins.opcode == "st" and flow.changes_maps and of.is_opaque(forms, MAP))
    )
    return None if good else _found(_EFFECTS[ins.opcode], forms, ins)


def _found(what: str, forms: Forms, ins: ptx.Instruction) -> AddressUse:
    return AddressUse(what, tuple(sorted(of.names(forms))), ins)
