"""Forward analysis over a kernel's blocks: what may hold on some path to each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cutegen_lab.emulator.translate.cfg import Block

T = TypeVar("T")


def states_before(
    blocks: list[Block], start: frozenset[T], after: Callable[[Block, frozenset[T]], frozenset[T]]
) -> dict[int, frozenset[T]]:
    """What may hold where each reachable block begins, by its index; ``start`` holds where the first does.

    ``after`` is the state after a block, and may only grow with the state before it.
    """
    entry = {0: start}
    waiting = [0]
    while waiting:
        index = waiting.pop()
        out = after(blocks[index], entry[index])
        for successor in blocks[index].successors(index):
            before = entry.get(successor)
            joined = out if before is None else before | out
            if joined != before:
                entry[successor] = joined
                waiting.append(successor)
    return entry
