"""Places a build's tensors in another order and at other offsets in their memory.

A kernel must not depend on the order of its tensors in memory, nor on more than the contract's alignment (16 bytes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from cutegen_lab.core.artifact import Build, Relocation

ALIGNMENT_BYTES = 16
TAIL_BYTES = 1024  # bytes of guard after each tensor
_MOST_STEPS = 64  # largest offset in units of the alignment: covers every residue modulo 512 bytes and 1 KiB


@dataclass(frozen=True)
class Placement:
    """Order and position of a plan's tensors in memory."""

    order: tuple[int, ...]
    """``order[position]``: number in the plan of the tensor at this position."""
    offsets: tuple[int, ...]
    """Bytes between the start of a tensor's memory and the tensor, for each tensor of the plan."""
    tail: int = 0
    """Bytes after each tensor."""

    @property
    def position(self) -> dict[int, int]:
        """Number of a tensor in the plan → its position in memory."""
        return {tensor: place for place, tensor in enumerate(self.order)}


def planned_placement(count: int) -> Placement:
    """The plan's order, with each tensor filling its memory exactly, so that bounds are exact."""
    return Placement(tuple(range(count)), (0,) * count)


def shuffled_placement(count: int, inputs: int, generator: torch.Generator) -> Placement:
    """Random offsets; half of the time in any order, otherwise with inputs first, so that a device which identifies
    them by position (the emulator, for reads of unwritten memory) still can."""
    if _random(2, generator):
        order = _permutation(count, generator)
    else:
        rest = _permutation(count - inputs, generator)
        order = [*_permutation(inputs, generator), *(inputs + i for i in rest)]
    return Placement(tuple(order), _offsets(count, generator), TAIL_BYTES)


def reversed_placement(count: int, generator: torch.Generator) -> Placement:
    """Outputs before inputs, with random offsets."""
    return Placement(tuple(reversed(range(count))), _offsets(count, generator), TAIL_BYTES)


def relocated_build(build: Build, placement: Placement, inputs: int) -> Build:
    """``build`` with relocations that point at the tensors' new positions.

    Tensors of the result are in ``placement.order``. If inputs and others are mixed, ``inputs`` is None: all count as
    holding data.
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
