"""Basic blocks, liveness, and allocation of virtual registers to rows of the register files.

PTX is close to SSA, so a kernel has far more registers than are ever live. Linear-scan allocation over whole live
ranges (Poletto and Sarkar 1999) keeps the working set of a few thousand lanes in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.ptx.types import FILES
from cutegen_lab.emulator.translate.emit import Emit
from cutegen_lab.emulator.translate.meetings import meeting, meetings

EXIT = -1
Rows = tuple[list[int], list[int], list[int], list[int]]
"""Row numbers by register file, in the order of :data:`FILES`."""


@dataclass
class Block:
    """Straight-line code. ``target``: the block to which its branch jumps (EXIT: the thread ends) if ``guard`` is true,
    or false if ``negated``."""

    emits: list[Emit]
    first: int  # index of its first instruction
    target: int | None = None
    guard: ptx.Reg | None = None
    negated: bool = False
    falls_through: bool = True
    uses: set[str] = field(default_factory=set)
    defs: set[str] = field(default_factory=set)
    live_in: set[str] = field(default_factory=set)
    live_out: set[str] = field(default_factory=set)
    terminator: ptx.Instruction | None = None
    last: list[str] = field(default_factory=list)  # lines before the branch
    last_uses: dict[str, ptx.Reg] = field(default_factory=dict)
    within: bool = False  # whether it is a synchronisation point within straight-line code

    @property
    def parks(self) -> bool:
        return bool(self.emits) and self.emits[0].parks

    @property
    def meets_lanes(self) -> bool:
        """True if the block is a synchronisation point (:mod:`meetings`) rather than instructions."""
        return bool(self.emits) and bool(self.emits[0].meets) and not self.emits[0].klass

    @property
    def size(self) -> int:
        """Number of instructions, including the branch."""
        return sum(bool(emit.klass) for emit in self.emits) + (self.terminator is not None)

    def successors(self, index: int) -> list[int]:
        found = [] if self.target in (None, EXIT) else [self.target]
        return [s for s in [*found, index + 1 if self.falls_through else None] if s is not None]


def is_branch(instruction: ptx.Instruction) -> bool:
    return instruction.opcode in ("bra", "ret", "exit")


def basic_blocks(kernel: ptx.Kernel, emits: dict[int, Emit]) -> list[Block]:
    """Blocks in text order; an instruction at which lanes may wait is a block of its own. ``emits`` by instruction
    index."""
    code, size = kernel.code, len(kernel.code)
    labels = {at for at in kernel.labels.values() if at < size}
    branches = {i + 1 for i, instruction in enumerate(code) if is_branch(instruction)}
    parks = {i for i, emit in emits.items() if emit.parks}
    fences = {i + 1 for i in parks if code[i].opcode == "wgmma"}
    meets = meetings(code, labels | branches | {i + 1 for i in parks} - fences)
    apart = {0} | labels | branches | parks | {i + 1 for i in parks}
    leaders = apart | meets.keys()
    starts = sorted(s for s in leaders if s < size)
    index_of = {start: n + sum(len(m) for i, m in meets.items() if i < start) for n, start in enumerate(starts)}
    blocks = []
    for n, start in enumerate(starts):
        stop = starts[n + 1] if n + 1 < len(starts) else size
        for kind in meets.get(start, ()):
            blocks.append(Block([meeting(emits[start], kind)], start))
            blocks[-1].within = blocks[-1].meets_lanes and start not in apart
        block = Block([emits[i] for i in range(start, stop) if i in emits], start)
        last = code[stop - 1]
        if is_branch(last):
            _terminate(block, last, kernel, index_of)
        if n + 1 == len(starts) and block.falls_through:
            block.target, block.falls_through = EXIT, False
        blocks.append(block)
    liveness(blocks)
    return blocks


def _terminate(block: Block, last: ptx.Instruction, kernel: ptx.Kernel, index_of: dict[int, int]) -> None:
    block.terminator, block.guard, block.negated = last, last.guard, last.negated
    block.falls_through = last.guard is not None
    if last.opcode != "bra":
        block.target = EXIT
        return
    label = last.operands[0] if last.operands else None
    if not isinstance(label, ptx.Symbol) or label.name not in kernel.labels or set(last.mods) - {"uni"}:
        raise Unsupported(f"the emulator does not execute `{last.name}` to this target", last.line, last.text)
    block.target = index_of.get(kernel.labels[label.name], EXIT)


def liveness(blocks: list[Block]) -> None:
    """Fills in what each block uses and defines, and what is live where it begins and ends."""
    for block in blocks:
        block.uses, block.defs = set(), set()
        for emit in block.emits:
            guard = {emit.ins.guard.name} if emit.ins.guard else set()
            block.uses |= (set(emit.uses) | guard) - block.defs
            block.defs |= set(emit.defs)
        block.uses |= set(_at_the_end(block)) - block.defs
        block.live_in = set(block.uses)
    after = [block.successors(i) for i, block in enumerate(blocks)]
    order = postorder(after)
    changed = True
    while changed:
        changed = False
        for index in order:
            block = blocks[index]
            block.live_out = set().union(*(blocks[s].live_in for s in after[index]))
            live_in = block.uses | (block.live_out - block.defs)
            changed |= live_in != block.live_in
            block.live_in = live_in


def postorder(after: Sequence[Sequence[int]]) -> list[int]:
    """Block numbers in postorder of the control-flow graph; unreachable blocks come last. ``after``: successors by
    block."""
    found: list[int] = []
    seen = [False] * len(after)
    for first in range(len(after)):
        path = [] if seen[first] else [(first, iter(after[first]))]
        seen[first] = True
        while path:
            step = next((s for s in path[-1][1] if not seen[s]), None)
            if step is None:
                found.append(path.pop()[0])
            else:
                seen[step] = True
                path.append((step, iter(after[step])))
    return found


def _at_the_end(block: Block) -> dict[str, ptx.Reg]:
    """Registers read after the last instruction."""
    return {**block.last_uses, **({block.guard.name: block.guard} if block.guard else {})}


def allocate(blocks: list[Block]) -> tuple[dict[str, tuple[str, int]], dict[str, int]]:
    """(register name -> (file, row), rows needed by file).

    A destination never shares a row with a source that dies in the same instruction, so that an opcode may write its
    result before it has read all its operands.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    registers: dict[str, ptx.Reg] = {}
    at = 0

    def touch(names: set[str], position: int) -> None:
        for name in names:
            first.setdefault(name, position)
            last[name] = position

    for block in blocks:
        touch(block.live_in, at)
        for emit in block.emits:
            registers.update(emit.uses)
            registers.update(emit.defs)
            guard = {emit.ins.guard.name: emit.ins.guard} if emit.ins.guard else {}
            registers.update(guard)
            touch(set(emit.uses) | set(emit.defs) | set(guard), at)
            at += 1
        registers.update(_at_the_end(block))
        touch(set(_at_the_end(block)), at)
        touch(block.live_out, at)
        at += 1
    rows: dict[str, tuple[str, int]] = {}
    needed = dict.fromkeys(FILES, 0)
    free: dict[str, list[int]] = {f: [] for f in FILES}
    active: list[tuple[int, str, int]] = []
    for name in sorted(first, key=lambda n: (first[n], n)):
        for ended in [a for a in active if a[0] < first[name]]:
            active.remove(ended)
            free[ended[1]].append(ended[2])
        kind = registers[name].file
        row = free[kind].pop() if free[kind] else needed[kind]
        needed[kind] = max(needed[kind], row + 1)
        rows[name] = (kind, row)
        active.append((last[name], kind, row))
    return rows, needed


def rows_by_file(names: set[str], rows: dict[str, tuple[str, int]]) -> Rows:
    found: dict[str, list[int]] = {f: [] for f in FILES}
    for name in names:
        kind, row = rows[name]
        found[kind].append(row)
    return (sorted(found["P"]), sorted(found["H"]), sorted(found["U"]), sorted(found["D"]))
