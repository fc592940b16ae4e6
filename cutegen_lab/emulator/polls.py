"""How often a kernel asks an mbarrier before it opens: a clock that no register list forbids.

A loop that asks (``test_wait``, ``try_wait``) until it may go on runs a few times here and thousands of times on a GPU.
What it counts meanwhile may not leave it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.cfg import EXIT, Block

_KEEPS = ("st", "atom", "red", "stmatrix")


def counted(blocks: Sequence[Block]) -> ptx.Instruction | None:
    """An instruction in a loop of polls whose result, by the number of polls, outlives the loop."""
    waits = [i for i, block in enumerate(blocks) if block.parks and block.emits[0].ins.opcode == "mbarrier"]
    if not waits:
        return None
    loops = sorted(_loops(blocks), key=len)
    for at in waits:
        loop = next((loop for loop in loops if at in loop), None)
        if loop is not None and _ends_by(blocks, at, loop) and (found := _outlives(blocks, loop)):
            return found
    return None


def _outlives(blocks: Sequence[Block], loop: frozenset[int]) -> ptx.Instruction | None:
    """What changes in every turn of ``loop`` and is read after it, or is stored in it."""
    after = set[str]().union(*(blocks[s].live_in for i in loop for s in blocks[i].successors(i) if s not in loop))
    carried = after.intersection(*(blocks[i].live_in for i in loop))
    for i in sorted(loop):
        for emit in blocks[i].emits:
            if emit.ins.opcode in _KEEPS or carried.intersection(emit.defs):
                return emit.ins
    return None


def _ends_by(blocks: Sequence[Block], wait: int, loop: frozenset[int]) -> bool:
    """Whether a branch out of ``loop`` follows from what block ``wait`` is told."""
    told = set(blocks[wait].emits[0].defs)
    grown = True
    while grown:
        grown = False
        for i in loop:
            for emit in blocks[i].emits:
                if told & set(emit.reads) and not set(emit.defs) <= told:
                    told |= set(emit.defs)
                    grown = True
    leaving = (i for i in loop if not set(blocks[i].successors(i)) <= loop or blocks[i].target == EXIT)
    return any(guard.name in told for i in leaving if (guard := blocks[i].guard) is not None)


def _loops(blocks: Sequence[Block]) -> Iterator[frozenset[int]]:
    """The body of each natural loop, by the branch back to its head (Aho, Lam, Sethi and Ullman, 9.6.6)."""
    after = [block.successors(i) for i, block in enumerate(blocks)]
    before: list[list[int]] = [[] for _ in blocks]
    for i, successors in enumerate(after):
        for s in successors:
            before[s].append(i)
    above = _dominators(before)
    for tail, heads in enumerate(after):
        for head in heads:
            if above[tail] >> head & 1:
                body, left = {head}, [tail]
                while left:
                    if (at := left.pop()) not in body:
                        body.add(at)
                        left += before[at]
                yield frozenset(body)


def _dominators(before: Sequence[Sequence[int]]) -> list[int]:
    """By block, as bits, those through which every path to it leads; all blocks for one that is never reached."""
    every = (1 << len(before)) - 1
    found = [1, *(every for _ in before[1:])]
    changed = True
    while changed:
        changed = False
        for i in range(1, len(before)):
            new = every
            for p in before[i]:
                new &= found[p]
            new |= 1 << i
            if new != found[i]:
                found[i], changed = new, True
    return found
