"""Straight-line code as ptxas schedules it: loads in flight together, and latency of dependency chains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from cutegen_lab.emulator.ptx.syntax import Instruction
from cutegen_lab.emulator.translate.cfg import EXIT, Block
from cutegen_lab.emulator.translate.emit import Emit

_HOISTED = 128  # maximum bytes of loads per lane that ptxas hoists, limited by registers
# Latency in cycles by class. Arithmetic: Jia et al. 2018 (arXiv 1804.06826, section 4.1: four cycles since Volta);
# shared memory on H100: Luo et al. 2025 (arXiv 2501.12084). Global loads count at their waits; wgmma is asynchronous.
_CYCLES: Mapping[str, int] = {
    "f32": 4, "half": 4, "integer": 4, "f64": 8, "convert": 8, "special": 18, "shared": 29, "warp": 23, "local": 33,
    "tensor": 33, "move": 0,
}  # fmt: skip
_OTHER_CYCLES = 2


@dataclass(frozen=True)
class LoadBatch:
    """Global loads in flight together: bytes per lane, their sites, and the first instruction that uses one of their
    values (the last load, if no instruction of this code does)."""

    size: int
    sites: tuple[int, ...]
    needed_by: Instruction


@dataclass(frozen=True)
class DependencyChains:
    """Loads and latency of the straight-line code that begins with a basic block. ``load_batches``: loads and their
    waits, without cp.async if the kernel waits for cp.async groups. ``chain``: the longest dependency chain, as
    (instruction, cycles)."""

    load_batches: tuple[LoadBatch, ...] = ()
    chain: tuple[tuple[Instruction, int], ...] = ()


def straight_code(blocks: list[Block], hammocks: Container[int]) -> tuple[DependencyChains, ...]:
    """By block: chains of the straight-line code that begins with it. ptxas predicates branches over one block, so code
    may continue past several; blocks within it get an empty entry."""
    in_groups = any(emit.waits_loads for block in blocks for emit in block.emits)
    found = [DependencyChains()] * len(blocks)
    for first, emits, bodies in _runs(blocks, hammocks):
        found[first] = DependencyChains(_batches(emits, bodies, in_groups), _chain(emits))
    return tuple(found)


def predicated(blocks: list[Block], hammocks: Container[int]) -> dict[int, int]:
    """{body of a branch in a loop: the block before it}. ptxas predicates such bodies, so all warps that execute the
    block before issue them (seen in SASS for bodies of up to 85 instructions)."""
    guarded, _ = _branches(blocks, hammocks)
    back = [(block.target, last) for last, block in enumerate(blocks) if block.target is not None]
    loops = [range(first, last) for first, last in back if first != EXIT]
    return {at + 1: at for at in guarded if any(at in loop for loop in loops)}


def copies(emit: Emit) -> bool:
    """True for cp.async, its commit_group and its waits."""
    return emit.ins.opcode == "cp" and "bulk" not in emit.ins.mods


def _runs(blocks: list[Block], hammocks: Container[int]) -> Iterator[tuple[int, list[Emit], frozenset[int]]]:
    """(first block, its straight-line code, indices in it of predicated bodies). A body that keeps its branch is
    straight-line code of its own; synchronisation points are left out."""
    guarded, joined = _branches(blocks, hammocks)
    first = 0
    while first < len(blocks):
        if blocks[first].meets_lanes:
            first += 1
            continue
        last, emits, bodies = first, list(blocks[first].emits), set[int]()
        while (met := last + 1 < len(blocks) and blocks[last + 1].within) or last - 1 in joined or last in guarded:
            if met:
                emits += blocks[last + 2].emits
                last += 2
                continue
            if last - 1 not in joined:
                bodies |= set(range(len(emits), len(emits) + len(blocks[last + 1].emits)))
            after = last + 3 if blocks[last + 2].meets_lanes else last + 2
            emits += blocks[last + 1].emits + blocks[after].emits
            last = after
        yield first, emits, frozenset(bodies)
        first = last + 1


def _branches(blocks: list[Block], hammocks: Container[int]) -> tuple[set[int], set[int]]:
    """Blocks that end in a branch over the next block, if nothing else jumps to the block after that: (branches that
    ptxas predicates, branches that it merges with the one two blocks later and keeps)."""
    jumps = Counter(block.target for block in blocks)
    straight = {at for at in range(len(blocks)) if at in hammocks and jumps[at + 2] == 1}
    pairs = {at for at in straight if at + 2 in straight and at + 3 < len(blocks)}
    joined = {at for at in pairs if _joins(*blocks[at : at + 4])}
    return straight - joined - {at + 2 for at in joined}, joined


def _joins(branch: Block, body: Block, again: Block, more: Block) -> bool:
    """True if ptxas merges two branches: ``again`` directly tests the same predicate as ``branch``, and ``more`` reads
    results of ``body``. ptxas keeps such a branch and predicates others (seen in SASS of 2 to 8 such loads)."""
    same = (branch.guard, branch.negated) == (again.guard, again.negated)
    return same and not again.emits and bool(more.uses & body.defs)


def _batches(emits: list[Emit], bodies: Container[int], in_groups: bool) -> tuple[LoadBatch, ...]:
    """Global loads that can be in flight together: ptxas hoists a load over instructions that do not feed its address,
    up to a store or wait, and up to about ``_HOISTED`` bytes of registers. A predicated load (in ``bodies`` or guarded)
    keeps other lanes' values, so it also depends on its destination register."""
    if not emits:
        return ()
    batches, size, sites, pending = list[LoadBatch](), 0, list[int](), set[str]()
    needed_by, needed = emits[0].ins, False
    for place, emit in enumerate(emits):
        bytes_ = 0 if in_groups and copies(emit) else emit.load_bytes
        waits = emit.waits_loads or emit.klass in ("store", "atomic", "barrier")
        depends = bool(pending & {*emit.uses, *(emit.defs if place in bodies else ())})
        if depends and not needed:
            needed_by, needed = emit.ins, True
        if size and (waits or (bytes_ and (depends or size + bytes_ > _HOISTED))):
            batches.append(LoadBatch(size, tuple(sites), needed_by))
            size, sites, pending, depends, needed = 0, [], set(), False, False
        if bytes_ and not needed:
            needed_by = emit.ins
        size += bytes_
        if bytes_ and emit.site is not None:
            sites.append(emit.site)
        if bytes_ or depends:
            pending |= set(emit.defs)
        elif emit.ins.guard is None and place not in bodies:
            pending -= set(emit.defs)
    return tuple([*batches, LoadBatch(size, tuple(sites), needed_by)] if size else batches)


def _chain(emits: list[Emit]) -> tuple[tuple[Instruction, int], ...]:
    """The longest dependency chain, as (instruction, cycles)."""
    ready: dict[str, int] = {}  # register -> index of its writer
    ends, before = list[int](), list[int]()  # by index: cycles until the result, writer of the latest operand
    for place, emit in enumerate(emits):
        guard = [] if emit.ins.guard is None else [emit.ins.guard.name]
        needs = [ready[name] for name in (*emit.uses, *guard) if name in ready]
        last = max(needs, key=lambda need: ends[need], default=-1)
        ends.append((ends[last] if needs else 0) + _cycles(emit))
        before.append(last)
        for name in emit.defs:
            ready[name] = place
    found, at = [], max(range(len(emits)), key=lambda place: ends[place], default=-1)
    while at >= 0:
        if cycles := _cycles(emits[at]):
            found.append((emits[at].ins, cycles))
        at = before[at]
    return tuple(reversed(found))


def _cycles(emit: Emit) -> int:
    return 0 if emit.sums is not None else _CYCLES.get(emit.klass, _OTHER_CYCLES)
