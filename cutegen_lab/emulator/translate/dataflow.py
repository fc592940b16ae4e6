"""Forward data-flow analysis over a kernel's blocks (union over paths)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cutegen_lab.emulator.translate.cfg import Block

T = TypeVar("T")


def states_before(
    blocks: list[Block], start: frozenset[T], after: Callable[[Block, frozenset[T]], frozenset[T]]
) -> dict[int, frozenset[T]]:
    """The state at the start of each reachable block, by its index; ``start`` is the first block's.

    ``after`` is the transfer function of a block, which must be monotone.
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
