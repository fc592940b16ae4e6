"""Instruments each instruction of a kernel to propagate tags of uninitialised values.

A kernel may read uninitialised shared or local memory or an uninitialised register, and not use the value: for example,
it loads and reduces rows past the end and does not store their results. After such a read the run is repeated with a
program in which every register R has a tag R~ (:mod:`tags`). The read is then a fault only if the value reaches an
address, a branch, global memory, an atomic operation or a barrier. A result has the largest tag of its operands;
``selp``, ``and`` and ``or`` of predicates, shuffles, matrix products and packed operations have more precise rules.
"""

from __future__ import annotations

from collections.abc import Callable

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.ptx.traits import registers
from cutegen_lab.emulator.ptx.types import WIDTH
from cutegen_lab.emulator.translate.cfg import Block, liveness
from cutegen_lab.emulator.translate.origin_tags import EFFECTS, NONE, Site, Tagged, number, tag_of

_WARP = {"vote", "match", "redux"}


def follow(blocks: list[Block]) -> tuple[Site, ...]:
    """Instruments every instruction. Returns the sites; a tag is an index in them plus one."""
    fresh, sites = set(blocks[0].live_in), list[Site]()
    for block in blocks:
        for emit in block.emits:
            if emit.klass:  # not a synchronisation point
                _Followed(emit, fresh, sites).write()
        if block.guard is not None and block.terminator is not None:
            tag = tag_of(block.guard)
            block.last_uses[tag.name] = tag
            if block.guard.name in fresh:
                site = number(sites, Site(block.terminator, block.guard.name))
                block.last.append(f"first_read(g,U[<{tag.name}>],{site},{block.guard.name!r})")
            block.last.append(f"matters(g,U[<{tag.name}>],'a branch depends on this value')")
    liveness(blocks)
    return tuple(sites)


class _Followed(Tagged):
    def write(self) -> None:
        opcode = self.emit.ins.opcode
        self.first_reads()
        rule = _RULES.get(opcode)
        if rule is not None and not self.passes_arguments():
            rule(self)
        elif opcode in EFFECTS or not self.defs:
            self._effect()
        else:
            self.give(f"warp_tags(g,{self.all()})" if opcode in _WARP else self.all())
        self.finish()

    def _effect(self) -> None:
        self.matters(self.most(self.reads), EFFECTS.get(self.emit.ins.opcode, f"`{self.emit.ins.opcode}`"))
        self.give(NONE)

    def _select(self) -> None:
        _, a, b, predicate = self.emit.ops
        chosen = f"{self.emit.s(predicate, 'pred')},{self.of(predicate)},{self.of(a)},{self.of(b)}"
        self.give(f"select_tags(g,{chosen})")

    def _logic(self) -> None:
        _, a, b = self.emit.ops
        if "pred" not in self.emit.ins.mods:
            masked = isinstance(b, ptx.Imm) and self.emit.ins.opcode == "and" and "b32" in self.emit.ins.mods
            kept = (
                sum(0xFFFF << i for i in (0, 16) if b.value >> i & 0xFFFF) if masked and isinstance(b, ptx.Imm) else -1
            )
            self.give(f"{self.most(self.reads)}&u32({kept})" if kept >= 0 else self.most(self.reads))
            return
        each = ",".join(f"np.asarray({self.emit.s(o, 'pred')}),{self.of(o)}" for o in (a, b))
        self.give(f"logic_tags(g,{each},{self.emit.ins.opcode == 'or'})")

    def _shuffle(self) -> None:
        mode = next(m for m in self.emit.ins.mods if m in ("up", "down", "bfly", "idx"))
        target, value, b, c, mask = self.emit.ops
        self.matters(self.of(mask), "which lanes take part")
        lanes = f"{self.emit.s(b, 'u32')},{self.emit.s(c, 'u32')}"
        source = self.most([*registers(b), *registers(c)])
        moved = f"shuffle(g,{self.of(value)},{mode!r},{lanes})[0]" if self.of(value) != NONE else NONE
        result = list(registers(target.first if isinstance(target, ptx.Pair) else target))
        for register in self.defs:
            parts = [part for part in (moved, source) if part != NONE]
            tag = f"most({','.join(parts)})" if register in result and parts else source
            self.early.append(f"U[<{tag_of(register).name}>][:]={tag}")

    def _move(self) -> None:
        target, source = self.emit.ops
        if isinstance(source, ptx.Vector):
            half = len(source.items) // 2
            parts = [
                self.most([r for o in part for r in registers(o)])
                for part in (source.items[:half], source.items[half:])
            ]
            self.give(f"join({','.join(parts)})")
        elif isinstance(target, ptx.Vector):
            half, tag = len(target.items) // 2, self.of(source)
            for i, item in enumerate(target.items):
                for register in registers(item):
                    one = (
                        f"join({tag},{tag})"
                        if tag == NONE
                        else f"spread({tag}>>u32(16))"
                        if i >= half
                        else f"spread({tag}&u32(65535))"
                    )
                    self.early.append(f"U[<{tag_of(register).name}>][:]={one}")
        else:
            self.give(self.most(self.reads))

    def _shift(self) -> None:
        amount, kind = self.emit.ops[2], self._kind()
        if isinstance(amount, ptx.Imm) and amount.value == 4 * WIDTH[kind] and kind[0] in "bu" and self.reads:
            way = "<<" if self.emit.ins.opcode == "shl" else ">>"
            self.give(f"{self.most(self.reads)}{way}u32(16)")
        else:
            self.give(self.all())

    def _permute(self) -> None:
        a, b, selector = self.emit.ops[1:4]
        if len(self.emit.ins.mods) == 1 and isinstance(selector, ptx.Imm):
            self.give(f"permute_tags({self.of(a)},{self.of(b)},{selector.value})")
        else:
            self.give(self.all())

    def _convert(self) -> None:
        """``cvt.f16x2.f32 d, a, b`` has ``a`` in the upper half."""
        mods, sources = self.emit.ins.mods, self.emit.ops[1:]
        if {"f16x2", "bf16x2"} & set(mods[:-1]) and len(sources) == 2:
            self.give(f"join({self.of(sources[1])},{self.of(sources[0])})")
        else:
            self.give(self.all())

    def _dot_of_halves(self) -> None:
        """``dp2a`` reads two of its second factor's four bytes."""
        _, first, second, added = self.emit.ops
        read = f"{self.of(second)}{'&u32(65535)' if 'lo' in self.emit.ins.mods else '>>u32(16)'}"
        others = self.most([*registers(first), *registers(added)])
        self.give(f"np.maximum(spread({read}),spread({others}))")

    def _bits(self) -> None:
        self.give(self.most(self.reads))

    def _packed(self) -> None:
        packed = {"f16x2", "bf16x2"} & set(self.emit.ins.mods)
        self.give(self.most(self.reads) if packed else self.all())

    def _space(self) -> str:
        spaces = [m.partition("::")[0] for m in self.emit.ins.mods]
        return next((s for s in spaces if s in ("global", "shared", "local", "param", "const")), "generic")

    def _kind(self) -> str:
        return next(m for m in self.emit.ins.mods if m in WIDTH)

    def _load(self) -> None:
        emit, space = self.emit, self._space()
        self.matters(self.of(emit.ops[1]), "an address")
        if space in ("global", "param", "const"):
            self.give(NONE)
            return
        base, offset = emit.address(emit.ops[1])
        targets = emit.items(emit.ops[0])
        access = f"{space!r},{base},{offset},{WIDTH[self._kind()]},{len(targets)},{self.site()}"
        self.early.append(f"tags=load_tags(g,{access})")
        for i, target in enumerate(targets):
            for register in registers(target):
                self.early.append(f"U[<{tag_of(register).name}>][:]=tags[{i}]")

    def _store(self) -> None:
        emit, space = self.emit, self._space()
        self.matters(self.of(emit.ops[0]), "an address")
        for further in emit.ops[2:]:
            self.matters(self.of(further), "an mbarrier")
        if space == "global":
            self.matters(self.of(emit.ops[1]), "a store to global memory")
            return
        base, offset = emit.address(emit.ops[0])
        tags = ",".join(self.of(o) for o in emit.items(emit.ops[1]))
        self.late.append(f"store_tags(g,{space!r},{base},{offset},{WIDTH[self._kind()]},[{tags}])")

    def _matrix(self, address: ptx.Operand) -> str:
        emit = self.emit
        self.matters(self.of(address), "an address")
        base, offset = emit.address(address)
        generic = not any(m.startswith("shared") for m in emit.ins.mods)
        return f"{f'from_generic(g,{base})' if generic else base},{offset}"

    def _load_matrix(self) -> None:
        target, address = self.emit.ops
        rows, at = self.rows(self.emit.items(target)), self._matrix(address)
        how = f"{len(self.emit.items(target))},{'trans' in self.emit.ins.mods},{self.site()}"
        self.early.append(f"U[list({rows})]=load_matrix_tags(g,{at},{how})")

    def _store_matrix(self) -> None:
        address, values = self.emit.ops
        at, rows = self._matrix(address), self.rows(self.emit.items(values))
        self.late.append(f"store_matrix_tags(g,{at},U[list({rows})],{'trans' in self.emit.ins.mods})")

    def _product(self) -> None:
        product = self.emit.product
        assert product is not None
        form = product.form
        names = [self.rows(self.emit.items(operand)) for operand in self.emit.ops]
        for other in self.emit.joined:  # keeps the rows of their operands allocated
            self.emit.uses.update(other.reads)
        self.early.append(f"product_tags(g,{form.shape[0] // 8},{form.d == 'f16'},{','.join(names)})")

    def _warpgroup(self) -> None:
        emit = self.emit
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
            self.early.append(f"sums_first_read(g,{rows},{test},{self.site(shown)},{shown!r})")
        self.late.append(f"warpgroup_tags(g,{self._kind() == 'f16'},{rows},{test},{self.rows([a])})")


_RULES: dict[str, Callable[[_Followed], None]] = {
    "selp": _Followed._select, "and": _Followed._logic, "or": _Followed._logic, "shfl": _Followed._shuffle,
    "ld": _Followed._load, "ldu": _Followed._load, "st": _Followed._store, "ldmatrix": _Followed._load_matrix,
    "stmatrix": _Followed._store_matrix, "mma": _Followed._product, "wgmma": _Followed._warpgroup,
    "mov": _Followed._move,
    "shl": _Followed._shift, "shr": _Followed._shift, "prmt": _Followed._permute, "cvt": _Followed._convert,
    "dp2a": _Followed._dot_of_halves,
    **dict.fromkeys(("xor", "not", "lop3"), _Followed._bits),
    **dict.fromkeys(("add", "sub", "mul", "fma", "min", "max", "neg", "abs", "ex2", "tanh"), _Followed._packed),
}  # fmt: skip
