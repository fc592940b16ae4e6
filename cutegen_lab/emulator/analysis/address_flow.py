"""Data-flow analysis: how each register of a kernel depends on addresses (:mod:`provenance`).

Within a basic block a register has the forms of its last write; at the start of a block, it has the forms from the end
of any block. Since compilers give every value its own register, this is precise. It takes time linear in the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.analysis import provenance as of
from cutegen_lab.emulator.analysis.pointer_distance import PointerDistance
from cutegen_lab.emulator.analysis.provenance import ANY, NOTHING, PLAIN, Forms
from cutegen_lab.emulator.isa.extended import CARRY
from cutegen_lab.emulator.program import Program, Written
from cutegen_lab.emulator.ptx.traits import registers
from cutegen_lab.emulator.ptx.types import WIDTH

PARAMETER, SHARED, LOCAL, MODULE = "parameter", "shared memory", "local memory", "the module"
MAP = "a tensor map"
MAP_BYTES = 128
POLICY, STATE, CLUSTER = "a cache policy", "an mbarrier's state", "another block's shared memory"
_CARRIES = ("addc", "subc", "madc")  # instructions that read CC.CF, an implicit operand
_MAPPED = 1 << 16  # in a shared::cluster address (mapa), bits below this are offset bits; the block's rank is above
Results = Forms | Mapping[str, Forms]
"""One value for all registers that an instruction writes, or one for each by name."""


class AddressFlow:
    """``pointers`` are (parameter, byte, tensor) of each tensor's address in the parameters."""

    def __init__(self, program: Program, pointers: Sequence[tuple[int, int, int]]) -> None:
        self._blocks, self._spaces = program.code, program.spaces
        self._nearby = PointerDistance(program.code)
        numbers = {name: i for i, (name, _) in enumerate(program.params)}
        self._params = {name: {o: t for p, o, t in pointers if p == i} for name, i in numbers.items()}
        self._sizes = dict(program.params)
        self._loose = {f"{PARAMETER} {name}" for name in numbers} | {
            f"{LOCAL if v.space == 'local' else MODULE} {v.name}"
            for v in program.kernel.variables
            if v.align < of.ALIGNMENT
        }  # bases with alignment below ALIGNMENT: their low bits depend on the memory layout
        self._maps = {name for name, size in program.params if size == MAP_BYTES}
        self.changes_maps = any(_changes_maps(ins) for block in self._blocks for ins, _ in block)
        self._left: dict[str, Forms] = {}  # forms by register at the end of any block
        self._here: dict[str, Forms] = {}  # forms by register in the current block so far
        grown = True
        while grown:
            grown = False
            for block in self._blocks:
                for _ in self._through(block):
                    pass
                for name, forms in self._here.items():
                    before = self._left.get(name, NOTHING)
                    if (after := of.join(before, forms)) != before:
                        self._left[name], grown = after, True

    def walk(self) -> Iterator[Written]:
        """Yields every instruction and the registers that it writes. Until the next is taken, :meth:`value` gives the
        forms of operands before the instruction."""
        for block in self._blocks:
            yield from self._through(block)

    def _through(self, block: Sequence[Written]) -> Iterator[Written]:
        self._here = {}
        for ins, defs in block:
            yield ins, defs
            results = self._results(ins, defs)
            each = results if isinstance(results, Mapping) else dict.fromkeys(defs, results)
            if ins.guard is not None:  # lanes that do not run it keep their values
                each = {name: of.join(self._register(name), forms) for name, forms in each.items()}
            self._here.update(each)

    def value(self, operand: ptx.Operand) -> Forms:
        match operand:
            case ptx.Reg(name=name):
                return self._register(name)
            case ptx.Address(base=inner) | ptx.Not(operand=inner):
                return self.value(inner)
            case ptx.Symbol(name=name) if name in self._params:
                return of.base(f"{PARAMETER} {name}")
            case ptx.Symbol(name=name):
                space = self._spaces.get(name, "")
                kind = {"local": LOCAL, "param": PARAMETER}.get(space, MODULE)
                return of.base(f"{kind} {name}") if space not in ("", "shared") else PLAIN
            case ptx.Vector() | ptx.Pair() | ptx.TensorAddress():
                return of.join(NOTHING, *(self._register(r.name) for r in registers(operand)))
            case _:
                return PLAIN

    def reaches_pointers(self, forms: Forms) -> bool:
        """True if ``forms`` may be addresses in parameter space and some parameter holds a pointer: a load at an
        unknown offset may return it."""
        return any(name.startswith(PARAMETER) for name in of.names(forms)) and any(self._params.values())

    def blamed(self, ins: ptx.Instruction) -> list[str]:
        """All bases on which the operands of ``ins`` may depend."""
        depends: dict[str, set[str]] = {}
        grown = True
        while grown:
            grown = False
            for each, defs in self.walk():
                read = set[str]().union(*(self._bases(o, depends) for o in each.operands))
                for name in defs:
                    found = depends.setdefault(name, set())
                    new = read | of.names(self._left.get(name, NOTHING))
                    grown = grown or not new <= found
                    found |= new
        operands = [*ins.operands, *([ins.guard] if ins.guard else [])]
        return sorted(set[str]().union(*(self._bases(o, depends) for o in operands)))

    def _bases(self, operand: ptx.Operand, depends: Mapping[str, set[str]]) -> set[str]:
        read = set[str]().union(*(depends.get(r.name, set()) for r in registers(operand)))
        return read | of.names(self.value(operand))

    def _register(self, name: str) -> Forms:
        return self._here[name] if name in self._here else self._left.get(name, NOTHING)

    # --- instructions ------------------------------------------------------------------------------------------------

    def _results(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        rule = _RULES.get(ins.opcode)
        return rule(self, ins, defs) if rule is not None and defs else self._mixed(ins, defs)

    def _mixed(self, ins: ptx.Instruction, defs: frozenset[str]) -> Forms:
        """A result of which every bit may depend on every operand."""
        carried = self._register(CARRY.name) if ins.opcode in _CARRIES else PLAIN
        return PLAIN if of.is_plain(carried) and all(of.is_plain(self.value(o)) for o in _sources(ins, defs)) else ANY

    def _move(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        target, source = ins.operands
        value = self.value(source)
        if isinstance(source, ptx.Vector):
            return PLAIN if of.is_plain(value) else ANY
        if isinstance(target, ptx.Vector) and not of.is_plain(value):
            low = {r.name for r in registers(target.items[0])}
            return {name: value if name in low else ANY for name in defs}
        return value

    def _load(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        """Only parameters hold addresses: storing one to memory is refused."""
        target, address = ins.operands[:2]
        base = address.base if isinstance(address, ptx.Address) else address
        if isinstance(base, ptx.Argument):
            return self.value(base)
        if isinstance(base, ptx.Symbol) and base.name in self._params and isinstance(address, ptx.Address):
            items = target.items if isinstance(target, ptx.Vector) else (target,)
            width, pointers, size = WIDTH[_types(ins)[0]], self._params[base.name], self._sizes[base.name]
            each = [_loaded(pointers, address.offset + i * width, width, size) for i in range(len(items))]
            if base.name in self._maps:
                each = [PLAIN if of.is_plain(forms) else of.opaque(MAP) for forms in each]
            return {r.name: forms for item, forms in zip(items, each, strict=True) for r in registers(item)}
        forms = self.value(base)
        if not self.reaches_pointers(forms):
            return PLAIN
        only_maps = of.names(forms) <= {f"{PARAMETER} {name}" for name in self._maps}
        return of.opaque(MAP) if only_maps else ANY

    def _convert_address(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        """``cvta`` of a local address changes nothing: the result depends on the same base."""
        value = self.value(ins.operands[1])
        if not {"shared", "shared::cta", "shared::cluster"} & set(ins.mods):
            return value
        return (of.subtract if "to" in ins.mods else of.add)(value, of.base(SHARED))

    def _add(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        both = [self.value(o) for o in ins.operands[1:3]]
        return of.add(*both) if _wraps(ins) else self._mixed(ins, defs)

    def _subtract(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        both = [self.value(o) for o in ins.operands[1:3]]
        return of.subtract(*both) if _wraps(ins) else self._mixed(ins, defs)

    def _negate(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        return of.times(self.value(ins.operands[1]), -1) if _wraps(ins) else self._mixed(ins, defs)

    def _multiply(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        _, a, b = ins.operands[:3]
        if "lo" in ins.mods and isinstance(b, ptx.Imm):
            return of.times(self.value(a), b.value)
        return self._mixed(ins, defs)

    def _multiply_add(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        _, a, b, c = ins.operands[:4]
        if _wraps(ins, "wide", "hi") and of.is_plain(self.value(a)) and of.is_plain(self.value(b)):
            return self.value(c)  # the third operand is as wide as the sum
        return self._mixed(ins, defs)

    def _shift_left(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        _, a, b = ins.operands
        if isinstance(b, ptx.Imm) and 0 <= b.value < 8:
            return of.times(self.value(a), 1 << b.value)
        return self._mixed(ins, defs)

    def _and(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        """The low bits of an address are those of its offset; an address with low bits cleared is an address."""
        _, a, b = ins.operands
        value = self.value(a)
        if isinstance(b, ptx.Imm) and not of.is_plain(value) and self._aligned(value):
            if 0 <= b.value < of.ALIGNMENT:
                return PLAIN
            if -of.ALIGNMENT <= b.value < 0:
                return value
        return self._mixed(ins, defs)

    def _or(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        """``or`` with bits below an address's alignment, or with low (offset) bits of a ``mapa`` result."""
        _, a, b = ins.operands
        value = self.value(a)
        most = of.ALIGNMENT if self._aligned(value) else _MAPPED if of.is_opaque(value, CLUSTER) else 0
        return value if isinstance(b, ptx.Imm) and 0 <= b.value < most else self._mixed(ins, defs)

    def _aligned(self, value: Forms) -> bool:
        return of.aligned(value) and not of.names(value) & self._loose

    def _convert(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        """The lower half of an address is an address modulo 2³²; widened again it is not."""
        to, before = (*_types(ins), "b8", "b8")[:2]
        narrowed = (
            len(ins.operands) == 2
            and "sat" not in ins.mods
            and to[0] in "usb"
            and before[0] in "usb"
            and 4 <= WIDTH[to] <= WIDTH[before]
        )
        return self.value(ins.operands[1]) if narrowed else self._mixed(ins, defs)

    def _select(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        _, a, b, predicate = ins.operands
        return of.join(self.value(a), self.value(b)) if of.is_plain(self.value(predicate)) else ANY

    def _compare(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        a, b, *others = map(self.value, _sources(ins, defs))
        if not all(map(of.is_plain, others)):
            return ANY
        ordered = not {"eq", "ne"} & set(ins.mods)
        narrow = not {"u64", "s64", "b64"} & set(ins.mods)
        if ordered and not (of.is_plain(a) and of.is_plain(b)) and not self._nearby.near(*_sources(ins, defs)[:2]):
            return ANY  # an ordered comparison of values that may have wrapped
        return of.comparison(a, b, ordered, narrow)

    def _shuffle(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        _, value, *lanes = ins.operands
        return self.value(value) if all(of.is_plain(self.value(o)) for o in lanes) else ANY

    def _space_of(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        """``isspacep``, ``getctarank``: the space or block of an address does not depend on its base."""
        value = self.value(ins.operands[1])
        near = of.is_plain(value) or self._nearby.near(ins.operands[1])
        return PLAIN if of.is_address(value) and near else ANY

    def _map(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        _, address, rank = (self.value(o) for o in ins.operands)
        return of.opaque(CLUSTER) if of.is_address(address) and of.is_plain(rank) else ANY

    def _policy(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        return of.opaque(POLICY)

    def _mbarrier(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        return PLAIN if {"test_wait", "try_wait"} & set(ins.mods) else of.opaque(STATE)

    def _memory(self, ins: ptx.Instruction, defs: frozenset[str]) -> Results:
        """``atom``, ``ldmatrix``: values from memory."""
        return PLAIN


_RULES: dict[str, Callable[[AddressFlow, ptx.Instruction, frozenset[str]], Results]] = {
    "mov": AddressFlow._move, "ld": AddressFlow._load, "ldu": AddressFlow._load, "atom": AddressFlow._memory,
    "ldmatrix": AddressFlow._memory, "cvta": AddressFlow._convert_address, "add": AddressFlow._add,
    "sub": AddressFlow._subtract, "neg": AddressFlow._negate, "mul": AddressFlow._multiply,
    "mad": AddressFlow._multiply_add, "shl": AddressFlow._shift_left, "and": AddressFlow._and, "or": AddressFlow._or,
    "xor": AddressFlow._or, "cvt": AddressFlow._convert, "selp": AddressFlow._select, "setp": AddressFlow._compare,
    "shfl": AddressFlow._shuffle, "isspacep": AddressFlow._space_of, "getctarank": AddressFlow._space_of,
    "mapa": AddressFlow._map, "createpolicy": AddressFlow._policy, "mbarrier": AddressFlow._mbarrier,
}  # fmt: skip


def _sources(ins: ptx.Instruction, defs: frozenset[str]) -> list[ptx.Operand]:
    first = ins.operands[:1]
    writes = first and not isinstance(first[0], ptx.Address) and {r.name for r in registers(first[0])} & defs
    return list(ins.operands[1:] if writes else ins.operands)


def _changes_maps(ins: ptx.Instruction) -> bool:
    return ins.opcode == "tensormap" or (ins.opcode == "fence" and any(m.startswith("tensormap") for m in ins.mods))


def _types(ins: ptx.Instruction) -> list[str]:
    return [m for m in ins.mods if m in WIDTH]


def _wraps(ins: ptx.Instruction, *forms: str) -> bool:
    """True for integer arithmetic modulo 2³² or 2⁶⁴ with results as wide as the operands, or for one of ``forms``."""
    whole = _types(ins)[:1] in (["u64"], ["s64"], ["b64"], ["u32"], ["s32"], ["b32"])
    return whole and not ({"cc", "sat", "hi", "wide"} - set(forms)) & set(ins.mods)


def _loaded(pointers: Mapping[int, int], at: int, width: int, size: int) -> Forms:
    """Forms of ``width`` bytes at byte ``at`` of a parameter of ``size`` bytes; beyond it are other parameters."""
    if not 0 <= at <= size - width:
        return ANY
    if at in pointers and width == 8:
        return of.base(f"#{pointers[at]}")
    return ANY if any(at < start + 8 and start < at + width for start in pointers) else PLAIN
