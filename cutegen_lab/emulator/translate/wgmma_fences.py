"""wgmma that may read registers written since the last wgmma.fence (PTX ISA 9.7.15.7.1 wgmma.fence).

The fence orders what threads do with registers before what wgmma does with them: the sums, and A where it lies in
registers. A forward analysis over the blocks finds every wgmma that some path reaches without one, after its registers
were written or from the kernel's start. Those, and the instructions that write their registers, look at run time
whether it was so; in a kernel with its fences in place no instruction does. A ``mov`` writes only what its source was
written with: compilers move constants and copies past the fence, in NVIDIA's own kernels too.
"""

from __future__ import annotations

from cutegen_lab.emulator.translate.cfg import Block
from cutegen_lab.emulator.translate.dataflow import states_before
from cutegen_lab.emulator.translate.emit import Emit, InFlight

_START = ""  # stands for: no fence yet
_State = frozenset[str]
"""Registers that may have been written since the last fence."""


def mark(blocks: list[Block]) -> None:
    """Adds to the instructions concerned the lines that look."""
    if not any(_flights(e) for block in blocks for e in block.emits):
        return
    states = states_before(blocks, frozenset({_START}), lambda block, state: _Walk(block, state).state)
    walks = [_Walk(blocks[index], state) for index, state in states.items()]
    suspected = {flight for walk in walks for flight in walk.suspected}
    for walk in walks:
        for emit, names in walk.writes:
            written = [flight for flight in sorted(suspected) if not names.isdisjoint(flight.names)]
            emit.before += [f"g.m.products.written(g,{flight.number})" for flight in written]
        for emit in walk.products:
            for flight in sorted(suspected.intersection(_flights(emit))):
                reads = emit.adds if flight == emit.sums else "True"
                emit.before.append(f"g.m.products.require_fence(g,{flight.number},{reads})")


def _flights(emit: Emit) -> list[InFlight]:
    """Lists of registers that a wgmma works on."""
    return [flight for flight in (emit.sums, emit.operands) if flight is not None]


class _Walk:
    """Through one block: ``state`` after it, the lists that a wgmma reads with no fence before, and who does what."""

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
