"""The execution order of a run, one of those that hardware may take: a kernel's result must not depend on it.

CUDA C++ Programming Guide, "Thread Hierarchy": blocks run in any order, and so do warps. A clock starts at any value
(PTX ISA 10.23 %clock, 10.26 %globaltimer), and tensors lie at any address that is aligned to 16 bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

CLOCK_BITS = 62
SLOT = 1 << 24  # bytes; tensors never share a slot
_ROUND = 512
_MOST_SLOTS = 1 << 14
_MOST_SHUFFLED = 1 << 31  # maximum number of clusters that are shuffled: products of two numbers below it fit an int64


@dataclass(frozen=True)
class Order:
    """``seed``: shuffles clusters; 0: by number. ``reverse``: clusters in reverse order, and tensors in reverse order
    in memory, aligned to 16 bytes only. ``clock``: value of the clock registers at the start. ``warps``: seed of the
    interleaving of warps (:mod:`interleaving`) in race-detection mode, 0 for lockstep.
    """

    seed: int = 0
    reverse: bool = False
    clock: int = 0
    warps: int = 0

    def opposite(self) -> Order:
        """The most different order: clusters reversed, every bit of the clock inverted, lockstep and interleaving
        swapped."""
        clock = self.clock ^ ((1 << CLOCK_BITS) - 1)
        return replace(self, reverse=not self.reverse, clock=clock, warps=0 if self.warps else clock)

    @property
    def noise(self) -> int | None:
        """Seed of approximate arithmetic (:mod:`isa.approximate`): None in half of all runs; equal in the opposite
        order."""
        mixed = (self.clock ^ self.clock >> 1) & 0xFFFFFFFF
        return mixed if mixed & 1 else None

    def clusters(self, first: int, stop: int, count: int) -> Array:
        """Numbers of the clusters at places ``first`` to ``stop`` (excluded) in the order of ``count`` clusters."""
        at = np.arange(first, min(stop, count), dtype=np.int64)
        if self.reverse:
            at = count - 1 - at
        if self.seed and 2 < count <= _MOST_SHUFFLED:
            draw = random.Random(self.seed)  # noqa: S311 - an order of blocks is no secret
            step = next(s for s in iter(lambda: draw.randrange(1, count), 0) if gcd(s, count) == 1)
            at = (at * step + draw.randrange(count)) % count
        return at

    def placed(self, tensors: int) -> tuple[int, list[tuple[int, int]]]:
        """Placement of tensors, random with seed ``clock``: offset of the first tensor in units of ``SLOT``, and for
        each tensor by ascending address (tensor, bytes past a multiple of ``SLOT``). Bytes are multiples of 512, as
        from an allocator, plus 16 if ``reverse``."""
        draw = random.Random(self.clock)  # noqa: S311 - a place in memory is no secret
        far = draw.randrange(_MOST_SLOTS) if self.clock else 0
        past = [draw.randrange(SLOT // _ROUND) * _ROUND if self.clock else 0 for _ in range(tensors)]
        order = reversed(range(tensors)) if self.reverse else range(tensors)
        return far, [(i, past[i] + 16 * self.reverse) for i in order]
