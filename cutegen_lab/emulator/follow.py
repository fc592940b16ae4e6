"""Instructions that follow what nobody wrote to what it reaches, written beside each instruction of a kernel.

A kernel may read shared or local memory or a register that nobody has written, and drop the value: rows past the end
are loaded, reduced and not stored. Where a run has met such a read, it is done again by a program in which every
register R has a tag R~ (:mod:`origins`), and reads are faults only if the value reaches an address, a branch, global
memory, an atomic operation or a barrier. What an instruction computes has the tag of what it reads; ``selp``, ``and``
and ``or`` of predicates, shuffles, matrix products and what works on packed halves tell which of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.cfg import Block, liveness
from cutegen_lab.emulator.emit import Emit
from cutegen_lab.emulator.origins import MOST_SITES, Site
from cutegen_lab.emulator.types import WIDTH

_NONE = "u32(0)"
_CHECKS = ("g.m.require_", "require_full", "check_members")  # that all lanes are there, before anything else
_WARP = {"vote", "match", "redux"}
_EFFECTS = {
    "atom": "an atomic operation", "red": "an atomic operation", "cp": "a copy", "bar": "a barrier",
    "barrier": "a barrier", "mbarrier": "an mbarrier", "call": "a call",
}  # fmt: skip


def follow(blocks: list[Block]) -> tuple[Site, ...]:
    """Adds the tags to every instruction. Returns the sites, of which a tag is the number, from 1 on."""
    fresh, sites = set(blocks[0].live_in), list[Site]()
    for block in blocks:
        for emit in block.emits:
            _Tagged(emit, fresh, sites).write()
        if block.guard is not None and block.terminator is not None:
            tag = _tag(block.guard)
            block.last_uses[tag.name] = tag
            if block.guard.name in fresh:
                number = _number(sites, Site(block.terminator, block.guard.name))
                block.last.append(f"first_read(g,U[<{tag.name}>],{number},{block.guard.name!r})")
            block.last.append(f"matters(g,U[<{tag.name}>],'a branch depends on it')")
    liveness(blocks)
    return tuple(sites)


def _number(sites: list[Site], site: Site) -> int:
    if len(sites) < MOST_SITES - 1:
        sites.append(site)
    return len(sites)


def _tag(register: ptx.Reg) -> ptx.Reg:
    return ptx.Reg(f"{register.name}~", "U")


def registers(operand: ptx.Operand) -> Iterable[ptx.Reg]:
    """All that an operand names."""
    match operand:
        case ptx.Reg():
            yield operand
        case ptx.Address(base=inner) | ptx.Not(operand=inner):
            yield from registers(inner)
        case ptx.TensorAddress(base=inner, coordinates=items):
            for item in (inner, *items):
                yield from registers(item)
        case ptx.Vector(items=items):
            for item in items:
                yield from registers(item)
        case ptx.Pair(first=first, second=second):
            yield from registers(first)
            yield from registers(second)
        case _:
            return


class _Tagged:
    """One instruction, to which lines are added: ``early`` run before its own, ``late`` after them."""

    def __init__(self, emit: Emit, fresh: set[str], sites: list[Site]) -> None:
        self._emit, self._fresh, self._sites = emit, fresh, sites
        self._reads, self._defs = list(emit.reads.values()), list(emit.defs.values())
        self._early: list[str] = []
        self._late: list[str] = []

    def write(self) -> None:
        emit = self._emit
        self._first_reads()
        rule = _RULES.get(emit.ins.opcode)
        if rule is not None and not self._passes_arguments():
            rule(self)
        elif emit.ins.opcode in _EFFECTS or not self._defs:
            self._effect()
        else:
            self._give(f"warp_tags(g,{self.all()})" if emit.ins.opcode in _WARP else self.all())
        self._guarded()
        keeps = emit.ins.guard is not None or emit.parks  # of lanes that do not run it, or that wait on
        for register in (*self._reads, *(self._defs if keeps else ())):
            emit.uses[_tag(register).name] = _tag(register)
        for register in (*self._defs, *(r for r in self._reads if r.name in self._fresh)):
            emit.defs[_tag(register).name] = _tag(register)
        at = 1 if emit.collective and emit.lines and emit.lines[0].startswith(_CHECKS) else 0
        if emit.parks:
            emit.lines[:0] = self._early + self._late
        else:
            emit.lines[at:at] = self._early
            emit.lines += self._late

    # --- pieces of lines ---------------------------------------------------------------------------------------------

    def most(self, registers: Sequence[ptx.Reg]) -> str:
        """The largest tag of several registers, half by half."""
        found = [f"U[<{_tag(register).name}>]" for register in registers]
        return f"most({','.join(found)})" if len(found) > 1 else found[0] if found else _NONE

    def all(self) -> str:
        """Of what depends on all that is read."""
        return f"spread({self.most(self._reads)})" if self._reads else _NONE

    def of(self, operand: ptx.Operand) -> str:
        return self.most(list(registers(operand)))

    def rows(self, operands: Iterable[ptx.Operand]) -> str:
        return "(" + "".join(f"<{_tag(r).name}>," for operand in operands for r in registers(operand)) + ")"

    def matters(self, tags: str, depends: str) -> None:
        if tags != _NONE:
            self._early.append(f"matters(g,{tags},{depends + ' depends on it'!r})")

    def site(self, register: str = "") -> int:
        return _number(self._sites, Site(self._emit.ins, register))

    def _give(self, value: str) -> None:
        """Every destination gets the tag ``value``."""
        for register in self._defs:
            tag = f"U[<{_tag(register).name}>]"
            self._early.append(f"{tag}[:]={value}")
            value = tag

    def _first_reads(self) -> None:
        sums = set(self._emit.sums.names) if self._emit.sums else set[str]()
        for register in self._reads:
            if register.name in self._fresh and register.name not in sums:
                tag = f"U[<{_tag(register).name}>]"
                self._early.append(f"first_read(g,{tag},{self.site(register.name)},{register.name!r})")

    def _guarded(self) -> None:
        guard = self._emit.ins.guard
        if guard is None:
            return
        tag = _tag(guard)
        self._emit.uses[tag.name] = tag
        if guard.name in self._fresh:
            site = self.site(guard.name)
            self._emit.before.append(f"first_read(g,U[<{tag.name}>],{site},{guard.name!r})")
            self._emit.defs[tag.name] = tag
        if self._emit.ins.opcode in _EFFECTS or not self._defs:
            self._emit.before.append(f"matters(g,U[<{tag.name}>],'whether this happens depends on it')")
        for register in self._defs:
            name = _tag(register).name
            self._emit.after.append(f"np.maximum(U[<{name}>],U[<{tag.name}>],out=U[<{name}>])")

    def _passes_arguments(self) -> bool:
        return any(isinstance(register, ptx.Argument) for register in (*self._reads, *self._defs))

    # --- rules -------------------------------------------------------------------------------------------------------

    def _effect(self) -> None:
        self.matters(self.most(self._reads), _EFFECTS.get(self._emit.ins.opcode, f"`{self._emit.ins.opcode}`"))
        self._give(_NONE)

    def _select(self) -> None:
        _, a, b, predicate = self._emit.ops
        chosen = f"{self._emit.s(predicate, 'pred')},{self.of(predicate)},{self.of(a)},{self.of(b)}"
        self._give(f"select_tags(g,{chosen})")

    def _logic(self) -> None:
        _, a, b = self._emit.ops
        if "pred" not in self._emit.ins.mods:
            masked = isinstance(b, ptx.Imm) and self._emit.ins.opcode == "and" and "b32" in self._emit.ins.mods
            kept = (
                sum(0xFFFF << i for i in (0, 16) if b.value >> i & 0xFFFF) if masked and isinstance(b, ptx.Imm) else -1
            )
            self._give(f"{self.most(self._reads)}&u32({kept})" if kept >= 0 else self.most(self._reads))
            return
        each = ",".join(f"np.asarray({self._emit.s(o, 'pred')}),{self.of(o)}" for o in (a, b))
        self._give(f"logic_tags(g,{each},{self._emit.ins.opcode == 'or'})")

    def _shuffle(self) -> None:
        mode = next(m for m in self._emit.ins.mods if m in ("up", "down", "bfly", "idx"))
        target, value, b, c, mask = self._emit.ops
        self.matters(self.of(mask), "which lanes take part")
        lanes = f"{self._emit.s(b, 'u32')},{self._emit.s(c, 'u32')}"
        source = self.most([*registers(b), *registers(c)])
        moved = f"shuffle(g,{self.of(value)},{mode!r},{lanes})[0]" if self.of(value) != _NONE else _NONE
        result = list(registers(target.first if isinstance(target, ptx.Pair) else target))
        for register in self._defs:
            parts = [part for part in (moved, source) if part != _NONE]
            tag = f"most({','.join(parts)})" if register in result and parts else source
            self._early.append(f"U[<{_tag(register).name}>][:]={tag}")

    def _move(self) -> None:
        target, source = self._emit.ops
        if isinstance(source, ptx.Vector):
            half = len(source.items) // 2
            parts = [
                self.most([r for o in part for r in registers(o)])
                for part in (source.items[:half], source.items[half:])
            ]
            self._give(f"join({','.join(parts)})")
        elif isinstance(target, ptx.Vector):
            half, tag = len(target.items) // 2, self.of(source)
            for i, item in enumerate(target.items):
                for register in registers(item):
                    one = (
                        f"join({tag},{tag})"
                        if tag == _NONE
                        else f"spread({tag}>>u32(16))"
                        if i >= half
                        else f"spread({tag}&u32(65535))"
                    )
                    self._early.append(f"U[<{_tag(register).name}>][:]={one}")
        else:
            self._give(self.most(self._reads))

    def _shift(self) -> None:
        amount, kind = self._emit.ops[2], self._kind()
        if isinstance(amount, ptx.Imm) and amount.value == 4 * WIDTH[kind] and kind[0] in "bu" and self._reads:
            way = "<<" if self._emit.ins.opcode == "shl" else ">>"
            self._give(f"{self.most(self._reads)}{way}u32(16)")
        else:
            self._give(self.all())

    def _permute(self) -> None:
        a, b, selector = self._emit.ops[1:4]
        if len(self._emit.ins.mods) == 1 and isinstance(selector, ptx.Imm):
            self._give(f"permute_tags({self.of(a)},{self.of(b)},{selector.value})")
        else:
            self._give(self.all())

    def _convert(self) -> None:
        """``cvt.f16x2.f32 d, a, b`` has ``a`` in the upper half."""
        mods, sources = self._emit.ins.mods, self._emit.ops[1:]
        if {"f16x2", "bf16x2"} & set(mods[:-1]) and len(sources) == 2:
            self._give(f"join({self.of(sources[1])},{self.of(sources[0])})")
        else:
            self._give(self.all())

    def _bits(self) -> None:
        self._give(self.most(self._reads))

    def _packed(self) -> None:
        packed = {"f16x2", "bf16x2"} & set(self._emit.ins.mods)
        self._give(self.most(self._reads) if packed else self.all())

    def _space(self) -> str:
        spaces = [m.partition("::")[0] for m in self._emit.ins.mods]
        return next((s for s in spaces if s in ("global", "shared", "local", "param", "const")), "generic")

    def _kind(self) -> str:
        return next(m for m in self._emit.ins.mods if m in WIDTH)

    def _load(self) -> None:
        emit, space = self._emit, self._space()
        self.matters(self.of(emit.ops[1]), "an address")
        if space in ("global", "param", "const"):
            self._give(_NONE)
            return
        base, offset = emit.address(emit.ops[1])
        targets = emit.items(emit.ops[0])
        access = f"{space!r},{base},{offset},{WIDTH[self._kind()]},{len(targets)},{self.site()}"
        self._early.append(f"tags=load_tags(g,{access})")
        for i, target in enumerate(targets):
            for register in registers(target):
                self._early.append(f"U[<{_tag(register).name}>][:]=tags[{i}]")

    def _store(self) -> None:
        emit, space = self._emit, self._space()
        self.matters(self.of(emit.ops[0]), "an address")
        for further in emit.ops[2:]:
            self.matters(self.of(further), "an mbarrier")
        if space == "global":
            self.matters(self.of(emit.ops[1]), "what it stores to global memory")
            return
        base, offset = emit.address(emit.ops[0])
        tags = ",".join(self.of(o) for o in emit.items(emit.ops[1]))
        self._late.append(f"store_tags(g,{space!r},{base},{offset},{WIDTH[self._kind()]},[{tags}])")

    def _matrix(self, address: ptx.Operand, values: ptx.Operand) -> str:
        emit = self._emit
        self.matters(self.of(address), "an address")
        base, offset = emit.address(address)
        generic = not any(m.startswith("shared") for m in emit.ins.mods)
        return f"{f'from_generic(g,{base})' if generic else base},{offset}"

    def _load_matrix(self) -> None:
        target, address = self._emit.ops
        rows, at = self.rows(self._emit.items(target)), self._matrix(address, target)
        how = f"{len(self._emit.items(target))},{'trans' in self._emit.ins.mods},{self.site()}"
        self._early.append(f"U[list({rows})]=load_matrix_tags(g,{at},{how})")

    def _store_matrix(self) -> None:
        address, values = self._emit.ops
        at, rows = self._matrix(address, values), self.rows(self._emit.items(values))
        self._late.append(f"store_matrix_tags(g,{at},U[list({rows})],{'trans' in self._emit.ins.mods})")

    def _product(self) -> None:
        product = self._emit.product
        assert product is not None
        form = product.form
        names = [self.rows(self._emit.items(operand)) for operand in self._emit.ops]
        for other in self._emit.joined:  # nothing may take their operands' rows before
            self._emit.uses.update(other.reads)
        self._early.append(f"product_tags(g,{form.shape[0] // 8},{form.d == 'f16'},{','.join(names)})")

    def _warpgroup(self) -> None:
        emit = self._emit
        if emit.sums is None:
            self._effect()
            return
        sums, left, right, adds, *_ = emit.ops
        a = left if isinstance(left, ptx.Vector) else ptx.Vector(())
        self.matters(self.most([r for o in (left, right, adds) if o is not a for r in registers(o)]), "a wgmma")
        rows, test = self.rows([sums]), emit.adds
        if any(r.name in self._fresh for r in registers(sums)):
            first = emit.items(sums)[0]
            shown = f"{first.name} …" if isinstance(first, ptx.Reg) else "…"
            self._early.append(f"sums_first_read(g,{rows},{test},{self.site(shown)},{shown!r})")
        self._late.append(f"warpgroup_tags(g,{self._kind() == 'f16'},{rows},{test},{self.rows([a])})")


_RULES: dict[str, Callable[[_Tagged], None]] = {
    "selp": _Tagged._select, "and": _Tagged._logic, "or": _Tagged._logic, "shfl": _Tagged._shuffle,
    "ld": _Tagged._load, "ldu": _Tagged._load, "st": _Tagged._store, "ldmatrix": _Tagged._load_matrix,
    "stmatrix": _Tagged._store_matrix, "mma": _Tagged._product, "wgmma": _Tagged._warpgroup, "mov": _Tagged._move,
    "shl": _Tagged._shift, "shr": _Tagged._shift, "prmt": _Tagged._permute, "cvt": _Tagged._convert,
    **dict.fromkeys(("xor", "not", "lop3"), _Tagged._bits),
    **dict.fromkeys(("add", "sub", "mul", "fma", "min", "max", "neg", "abs", "ex2", "tanh"), _Tagged._packed),
}  # fmt: skip
