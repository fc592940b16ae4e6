"""Which of the orders that hardware may take an execution takes: a kernel must answer the same in all of them.

CUDA C++ Programming Guide, "Thread Hierarchy": blocks run in any order, and so do warps. A clock starts anywhere (PTX
ISA 10.23 %clock, 10.26 %globaltimer), and tensors lie anywhere that is aligned to 16 bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

CLOCK_BITS = 62
SLOT = 1 << 24  # bytes; no two tensors share one
_ROUND = 512
_MOST_SLOTS = 1 << 14
_MOST_SHUFFLED = 1 << 31  # clusters: products of two numbers below it fit an int64


@dataclass(frozen=True)
class Order:
    """``seed`` 0: clusters by number, else shuffled; ``reverse``: the last of that order first, and tensors placed
    in memory the other way round, aligned to 16 bytes and no more. ``clock`` is what the clocks show at the start.
    ``warps``: the seed of an order of warps (:mod:`interleaving`), 0: all in lockstep. It counts where races are looked
    for.
    """

    seed: int = 0
    reverse: bool = False
    clock: int = 0
    warps: int = 0

    def opposite(self) -> Order:
        """As unlike this one as can be: blocks the other way round, every bit of the clock the other way, warps in
        lockstep or not."""
        clock = self.clock ^ ((1 << CLOCK_BITS) - 1)
        return replace(self, reverse=not self.reverse, clock=clock, warps=0 if self.warps else clock)

    @property
    def noise(self) -> int | None:
        """Of approximate arithmetic (:mod:`isa.approximate`): None in half of all runs, and the same in the opposite
        one."""
        mixed = (self.clock ^ self.clock >> 1) & 0xFFFFFFFF
        return mixed if mixed & 1 else None

    def clusters(self, first: int, stop: int, count: int) -> Array:
        """Numbers of the clusters that run as the ``first``-th to ``stop``-th of ``count``."""
        at = np.arange(first, min(stop, count), dtype=np.int64)
        if self.reverse:
            at = count - 1 - at
        if self.seed and 2 < count <= _MOST_SHUFFLED:
            draw = random.Random(self.seed)  # noqa: S311 - an order of blocks is no secret
            step = next(s for s in iter(lambda: draw.randrange(1, count), 0) if gcd(s, count) == 1)
            at = (at * step + draw.randrange(count)) % count
        return at

    def placed(self, tensors: int) -> tuple[int, list[tuple[int, int]]]:
        """Where tensors lie, as random as ``clock``: how many times ``SLOT`` bytes the first lies behind the lowest
        address, and (tensor, bytes that it lies past the next multiple of ``SLOT``), lowest address first. Multiples of
        512 bytes, as allocators give them, or where it is ``reverse`` 16 bytes past one."""
        draw = random.Random(self.clock)  # noqa: S311 - a place is no secret from a program that ends with it
        far = draw.randrange(_MOST_SLOTS) if self.clock else 0
        past = [draw.randrange(SLOT // _ROUND) * _ROUND if self.clock else 0 for _ in range(tensors)]
        order = reversed(range(tensors)) if self.reverse else range(tensors)
        return far, [(i, past[i] + 16 * self.reverse) for i in order]
