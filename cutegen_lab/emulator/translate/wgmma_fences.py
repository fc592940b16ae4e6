"""Finds wgmma that may read registers written since the last wgmma.fence (PTX ISA 9.7.15.7.1 wgmma.fence).

The fence orders accesses of threads to registers before those of wgmma: to accumulators, and to A in registers. A
forward analysis over the blocks finds every wgmma that some path reaches without a fence since a write to its
registers, or since the kernel's start. Only those, and writers of their registers, get a check at run time. A ``mov``
counts as a write only if its source was written: compilers move constants and copies past the fence, also in NVIDIA's
kernels.
"""

from __future__ import annotations

from cutegen_lab.emulator.translate.cfg import Block
from cutegen_lab.emulator.translate.dataflow import states_before
from cutegen_lab.emulator.translate.emit import Emit, InFlight

_START = ""  # in a state: some path has no fence yet
_State = frozenset[str]
"""Registers that may have been written since the last fence."""


def mark(blocks: list[Block]) -> None:
    """Adds checks to the instructions found."""
    if not any(_flights(e) for block in blocks for e in block.emits):
        return
    states = states_before(blocks, frozenset({_START}), lambda block, state: _Walk(block, state).state)
    walks = [_Walk(blocks[index], state) for index, state in states.items()]
    suspected = {flight for walk in walks for flight in walk.suspected}
    for walk in walks:
        for emit, names in walk.writes:
            written = [flight for flight in sorted(suspected) if not names.isdisjoint(flight.names)]
            emit.before += [f"g.ctas.products.written(g,{flight.number})" for flight in written]
        for emit in walk.products:
            for flight in sorted(suspected.intersection(_flights(emit))):
                reads = emit.adds if flight == emit.sums else "True"
                emit.before.append(f"g.ctas.products.require_fence(g,{flight.number},{reads})")


def _flights(emit: Emit) -> list[InFlight]:
    """Register lists of a wgmma."""
    return [flight for flight in (emit.sums, emit.operands) if flight is not None]


class _Walk:
    """One block's analysis: ``state`` after it, register lists that a wgmma reads without a fence, writes, products."""

    def __init__(self, block: Block, before: _State) -> None:
        current = set(before)
        self.suspected: set[InFlight] = set()
        self.writes: list[tuple[Emit, set[str]]] = []
        self.products: list[Emit] = []
        for emit in block.emits:
            if emit.ins.opcode == "wgmma" and "fence" in emit.ins.mods:
                current.clear()
            elif flights := _flights(emit):
                self.products.append(emit)
                self.suspected.update(f for f in flights if _START in current or not current.isdisjoint(f.names))
            elif emit.ins.opcode != "mov" or not current.isdisjoint(emit.uses):
                current.update(emit.defs)
                self.writes.append((emit, set(emit.defs)))
            else:
                current.difference_update(emit.defs)
        self.state = frozenset(current)
