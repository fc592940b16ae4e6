"""Detects reads of uninitialised registers.

Registers that are live at the kernel's start are written on some paths only, or never. Registers with the same writers
share a predicate that records by lane whether one of these writers has run; kernels without such registers are
unchanged. :mod:`origin_rules` tracks how such a value is used.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.cfg import Block, liveness
from cutegen_lab.emulator.translate.emit import Emit


def watch(blocks: list[Block]) -> None:
    """Instruments reads and writes of registers that may be read before they are written."""
    fresh = blocks[0].live_in
    if not fresh:
        return
    written = _predicates(blocks, fresh)
    for block in blocks:
        for emit in block.emits:
            _watch(emit, written)
        if block.guard is not None and (seen := written.get(block.guard.name)):
            block.last_uses[seen.name] = seen
            block.last.append(_line(seen, block.guard.name))
    liveness(blocks)


def _predicates(blocks: list[Block], fresh: set[str]) -> dict[str, ptx.Reg]:
    """For each register of ``fresh`` the predicate that records whether it was written."""
    writers: dict[str, list[int]] = defaultdict(list)
    for number, emit in enumerate(emit for block in blocks for emit in block.emits):
        for name in fresh.intersection(emit.defs):
            writers[name].append(number)
    shared: dict[tuple[int, ...], ptx.Reg] = {}
    return {name: shared.setdefault(tuple(writers[name]), ptx.Reg(f"{name}?", "P")) for name in sorted(fresh)}


def _watch(emit: Emit, written: dict[str, ptx.Reg]) -> None:
    early: list[str] = []
    sums = emit.sums.names if emit.sums else ()
    looked: dict[str, ptx.Reg] = {}
    for name in emit.reads:
        if (seen := written.get(name)) and seen.name not in looked:
            looked[seen.name] = seen
            early.append(_line(seen, name, emit.adds if name in sums else ""))
    late = {written[name].name: written[name] for name in emit.defs if name in written}
    emit.uses.update(looked)
    emit.defs.update(late)
    marks = [f"P[<{name}>][:]=True" for name in late]
    if emit.ins.guard is not None or emit.parks:
        emit.uses.update(late)
    if (guard := emit.ins.guard) is not None and (seen := written.get(guard.name)):
        emit.uses[seen.name] = seen
        emit.before.append(_line(seen, guard.name))
    if emit.parks:
        emit.lines[:0] = early + marks
    else:
        emit.lines[:0] = early
        emit.lines += marks


def _line(seen: ptx.Reg, register: str, condition: str = "") -> str:
    where = f",{condition}" if condition else ""
    return f"require_written(g,P[<{seen.name}>],{register!r}{where})"


@runtime
def require_written(g: Any, written: Array, register: str, reads: Any = True) -> None:
    """Traps if a lane ``reads`` a register that is not ``written``."""
    if g.ctas.watches and not (written | np.logical_not(reads)).all():
        lane = int(np.flatnonzero(np.broadcast_to(~written & reads, (g.n,)))[0])
        trap = Trap(
            Verdict.UNINITIALISED_READ, f"reads register {register}, which nothing has written", int(g.gid[lane])
        )
        trap.follows = True
        raise trap
