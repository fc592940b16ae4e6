"""Finds kernels that count how often they poll, which is a way to measure time without a clock register.

A loop that polls an mbarrier (``test_wait``, ``try_wait``) or one location of global memory runs a few times in the
emulator and thousands of times on a GPU, so its iteration count may not be used after the loop. A loop that takes work
from a queue is allowed: it modifies the location (``atom``), or all threads of a block synchronise in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.ptx.traits import is_strong
from cutegen_lab.emulator.translate.cfg import EXIT, Block, postorder
from cutegen_lab.emulator.translate.emit import Emit

_KEEPS = ("st", "atom", "red", "stmatrix")
Loop = frozenset[int]


def counted(blocks: Sequence[Block]) -> ptx.Instruction | None:
    """An instruction in a polling loop whose result depends on the iteration count and is used after the loop."""
    polls = [(i, emit) for i, block in enumerate(blocks) for emit in block.emits if _asks(emit.ins)]
    loops = sorted(_loops(blocks), key=len) if polls else []
    for at, poll in polls:
        loop = next((loop for loop in loops if at in loop), None)
        if loop is None or not _one_place(blocks, poll, loop):
            continue
        results = _poll_results(blocks, poll, loop)
        if _ends_by(blocks, results, loop) and (found := _outlives(blocks, poll, results, loop)):
            return found
    return None


def _asks(ins: ptx.Instruction) -> bool:
    if ins.opcode == "mbarrier":
        return bool({"test_wait", "try_wait"} & set(ins.mods))
    return ins.opcode == "ld" and is_strong(ins) and not any(m.startswith("shared") for m in ins.mods)


def _one_place(blocks: Sequence[Block], poll: Emit, loop: Loop) -> bool:
    """True if every iteration polls the same location, and no barrier of the block is in the loop; other loops do
    work."""
    if poll.ins.opcode == "mbarrier":
        return True
    address = next((o for o in poll.ins.operands if isinstance(o, ptx.Address)), None)
    base = address.base if address else None
    within = [emit for i in loop for emit in blocks[i].emits]
    meets = any(emit.ins.opcode in ("bar", "barrier") and "warp" not in emit.ins.mods for emit in within)
    return not meets and not (isinstance(base, ptx.Reg) and any(base.name in emit.defs for emit in within))


def _poll_results(blocks: Sequence[Block], poll: Emit, loop: Loop) -> set[str]:
    """Registers that depend in ``loop`` on the polled value."""
    results, grown = set(poll.defs), True
    while grown:
        grown = False
        for i in loop:
            for emit in blocks[i].emits:
                if results & set(emit.reads) and not set(emit.defs) <= results:
                    results |= set(emit.defs)
                    grown = True
    return results


def _ends_by(blocks: Sequence[Block], results: set[str], loop: Loop) -> bool:
    """True if a branch out of ``loop`` depends on the polled value."""
    leaving = (i for i in loop if not set(blocks[i].successors(i)) <= loop or blocks[i].target == EXIT)
    return any(guard.name in results for i in leaving if (guard := blocks[i].guard) is not None)


def _outlives(blocks: Sequence[Block], poll: Emit, results: set[str], loop: Loop) -> ptx.Instruction | None:
    """An instruction of ``loop`` that stores, or whose loop-carried result (not the polled value) is used after the
    loop."""
    after = set[str]().union(*(blocks[s].live_in for i in loop for s in blocks[i].successors(i) if s not in loop))
    carried = after.intersection(set[str]().union(*(blocks[i].live_in for i in loop))) - results
    for i in sorted(loop):
        for emit in blocks[i].emits:
            if emit is not poll and (emit.ins.opcode in _KEEPS or carried.intersection(emit.defs)):
                return emit.ins
    return None


def _loops(blocks: Sequence[Block]) -> Iterator[Loop]:
    """The body of each natural loop, by the branch back to its head (Aho, Lam, Sethi and Ullman, 9.6.6)."""
    after = [block.successors(i) for i, block in enumerate(blocks)]
    before: list[list[int]] = [[] for _ in blocks]
    for i, successors in enumerate(after):
        for s in successors:
            before[s].append(i)
    above = _dominators(before, [i for i in reversed(postorder(after)) if i])
    for tail, heads in enumerate(after):
        for head in heads:
            if above[tail] >> head & 1:
                body, left = {head}, [tail]
                while left:
                    if (at := left.pop()) not in body:
                        body.add(at)
                        left += before[at]
                yield frozenset(body)


def _dominators(before: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    """Dominators of each block, as bits; all blocks for an unreachable one. ``order``: blocks but the first, in reverse
    postorder."""
    every = (1 << len(before)) - 1
    found = [1, *(every for _ in before[1:])]
    changed = True
    while changed:
        changed = False
        for i in order:
            new = every
            for p in before[i]:
                new &= found[p]
            new |= 1 << i
            if new != found[i]:
                found[i], changed = new, True
    return found
