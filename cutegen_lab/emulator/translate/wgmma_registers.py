"""Finds instructions that may touch registers of a wgmma in flight, or accumulators that are kept as a matrix.

PTX ISA 9.7.15.7.3: accumulators and registers of A must not be touched until wgmma.wait_group. A forward analysis over
the blocks finds every instruction that may follow a wgmma and names one of its registers. Only these instructions check
at run time that their lanes have waited, and copy accumulators to registers.
"""

from __future__ import annotations

from cutegen_lab.emulator.translate.cfg import Block
from cutegen_lab.emulator.translate.dataflow import states_before
from cutegen_lab.emulator.translate.emit import Emit, InFlight

_State = frozenset[tuple[InFlight, bool]]
"""(register list that may be in flight, True for accumulators, False for operands)."""
_NOTHING: _State = frozenset()


Live = tuple[tuple[int, frozenset[int]], ...]


def live_sums(live: set[str], flights: dict[tuple[str, ...], int], rows: dict[str, tuple[str, int]]) -> Live:
    """(number of a list, rows of its registers that are ``live``)."""
    found = ((n, frozenset(rows[name][1] for name in names if name in live)) for names, n in flights.items())
    return tuple((n, kept) for n, kept in found if kept)


def mark(blocks: list[Block]) -> None:
    """Adds checks and copies to each instruction that may touch such registers."""
    if not any(e.sums for block in blocks for e in block.emits):
        return
    in_flight = states_before(blocks, _NOTHING, lambda block, state: _walk(block, state, []))
    for index, state in in_flight.items():
        touched: list[tuple[int, InFlight, bool]] = []
        _walk(blocks[index], state, touched)
        live = _live_before(blocks[index]) if touched else []
        for n, flight, sums in touched:
            emit = blocks[index].emits[n]
            emit.before.append(_line(flight, live[n]) if sums else f"g.ctas.products.check_operands(g,{flight.number})")
            emit.collective = True


def _line(flight: InFlight, live: set[str]) -> str:
    """Copies accumulators to live registers only: rows of dead ones may be reused."""
    pairs = "".join(f"({i},<{name}>)," for i, name in enumerate(flight.names) if name in live)
    return f"g.ctas.products.settle(g,{flight.number},({pairs}))"


def _walk(block: Block, state: _State, touched: list[tuple[int, InFlight, bool]]) -> _State:
    """The state after ``block``; appends (instruction index, list, accumulators) to ``touched``."""
    current = set(state)
    for n, emit in enumerate(block.emits):
        for flight, sums in sorted(current):
            if _touches(emit, flight, sums):
                current.discard((flight, sums))
                touched.append((n, flight, sums))
        if emit.sums:
            current.add((emit.sums, True))
        if emit.operands:
            current.add((emit.operands, False))
    return frozenset(current)


def _touches(emit: Emit, flight: InFlight, sums: bool) -> bool:
    """True if ``emit`` touches the list illegally: a wgmma may use the same accumulators, and operands may be read."""
    names = set(flight.names)
    if not sums:
        return not names.isdisjoint(emit.defs)
    same = emit.sums is not None and emit.sums.number == flight.number
    return not same and not (names.isdisjoint(emit.defs) and names.isdisjoint(emit.uses))


def _live_before(block: Block) -> list[set[str]]:
    """Live registers before each instruction."""
    live = set(block.live_out)
    if block.guard:
        live.add(block.guard.name)
    found = []
    for emit in reversed(block.emits):
        live = (live - set(emit.defs)) | set(emit.uses)
        found.append(set(live))
    return found[::-1]
