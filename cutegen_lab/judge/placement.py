"""Where tensors lie: a build rewritten so that its tensors stand in another order, each some way into its memory.

No kernel may depend on the order of its tensors in memory, nor on more alignment than the contract gives (16 bytes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from cutegen_lab.core.artifact import Build, Relocation

ALIGNMENT_BYTES = 16
TAIL_BYTES = 1024  # of guard behind each tensor
_MOST_STEPS = 64  # an offset is up to this many alignments: every residue of 512 bytes and of 1 KiB


@dataclass(frozen=True)
class Placement:
    """``order[position]`` is the tensor (by its number in the plan) that stands there; tensor ``i`` begins
    ``offsets[i]`` bytes into its memory, and ``tail`` bytes follow it."""

    order: tuple[int, ...]
    offsets: tuple[int, ...]
    tail: int = 0

    @property
    def position(self) -> dict[int, int]:
        return {tensor: place for place, tensor in enumerate(self.order)}


def as_planned(count: int) -> Placement:
    """The plan's own order, every tensor at the very beginning and end of its memory: bounds are exact."""
    return Placement(tuple(range(count)), (0,) * count)


def shuffled(count: int, inputs: int, generator: torch.Generator) -> Placement:
    """Random offsets. Half the time any order; else inputs stay before the rest, so that a device which must know
    them by their place (the emulator, for reads of what nothing wrote) still does."""
    if _random(2, generator):
        order = _permutation(count, generator)
    else:
        rest = _permutation(count - inputs, generator)
        order = [*_permutation(inputs, generator), *(inputs + i for i in rest)]
    return Placement(tuple(order), _offsets(count, generator), TAIL_BYTES)


def reversed_order(count: int, generator: torch.Generator) -> Placement:
    """Outputs before inputs, with random offsets."""
    return Placement(tuple(reversed(range(count))), _offsets(count, generator), TAIL_BYTES)


def rewritten(build: Build, placement: Placement, inputs: int) -> Build:
    """``build`` with its relocations pointing at the same tensors where they stand now.

    The tensors of the result are those of ``placement.order``. Where they are mixed, ``inputs`` is no longer recorded:
    all of them count as holding data.
    """
    position = placement.position

    def there(r: Relocation) -> Relocation:
        return Relocation(r.param, r.offset, position[r.tensor], r.tensor_offset + placement.offsets[r.tensor])

    launches = tuple(replace(x, relocations=tuple(map(there, x.relocations))) for x in build.plan.launches)
    if set(placement.order[:inputs]) == set(range(inputs)):
        return replace(build, plan=replace(build.plan, launches=launches), inputs=inputs)
    return replace(build, plan=replace(build.plan, launches=launches, workspace=()), inputs=None)


def _permutation(count: int, generator: torch.Generator) -> list[int]:
    return [int(i) for i in torch.randperm(count, generator=generator)]


def _offsets(count: int, generator: torch.Generator) -> tuple[int, ...]:
    return tuple(ALIGNMENT_BYTES * (1 + _random(_MOST_STEPS - 1, generator)) for _ in range(count))


def _random(bound: int, generator: torch.Generator) -> int:
    return int(torch.randint(bound, (), generator=generator))
