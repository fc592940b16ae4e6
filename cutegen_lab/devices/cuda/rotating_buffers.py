"""Several copies of a workload's tensors on the device, each at its own addresses with its own values (L2-cold
rotation)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.stopwatch import rotation
from cutegen_lab.devices.cuda.worker_protocol import aligned
from cutegen_lab.problems.tensors import laid_out

FEWEST_SETS, MOST_SETS = 16, 128  # the calls of a graph, one for each set, share its fixed cost
# For large tensors fewer sets are enough, since a call takes tenths of a millisecond.
LEAST_SETS, MANY_BYTES = 8, 4 << 30
_POISONS = (0xFF, 0x7B)  # alternating: NaN in every floating-point type, and a large finite number


def set_count(set_bytes: int, l2_bytes: int, room_bytes: int) -> int:
    """Number of sets: as many as fill L2 twice, at least :data:`FEWEST_SETS` (:data:`LEAST_SETS` for large tensors), at
    most :data:`MOST_SETS` (fewer are cold too, since L2 is swept before a sample), as many as fit in ``room_bytes``,
    and one."""
    size = max(set_bytes, 1)
    fewest = max(min(FEWEST_SETS, MANY_BYTES // size), LEAST_SETS)
    return max(min(max(-(-2 * l2_bytes // size), fewest), MOST_SETS, room_bytes // size), 1)


class Arena:
    """One allocation that holds tensors one after another, each aligned to 256 bytes."""

    def __init__(self, specs: Sequence[TensorSpec], device: str) -> None:
        self.memory = torch.empty(sum(aligned(s.storage_bytes) for s in specs) or 1, dtype=torch.uint8, device=device)
        self.bytes: list[torch.Tensor] = []
        offset = 0
        for spec in specs:
            self.bytes.append(self.memory[offset : offset + spec.storage_bytes])
            offset += aligned(spec.storage_bytes)
        self.tensors = [laid_out(b, s) for s, b in zip(specs, self.bytes, strict=True)]

    @property
    def addresses(self) -> list[int]:
        return [self.memory.data_ptr() + int(b.storage_offset()) for b in self.bytes]


class RotatingBuffers:
    """``count`` sets of ``inputs`` and ``outputs``. ``masters``: bytes of each input; rotated, they are the inputs of
    every set."""

    def __init__(
        self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], masters: Sequence[torch.Tensor], count: int,
        device: str = "cuda",
    ) -> None:  # fmt: skip
        self.specs = (*inputs, *outputs)
        self._inputs, self._masters = inputs, masters
        self._arenas = [Arena(self.specs, device) for _ in range(count)]

    def __len__(self) -> int:
        return len(self._arenas)

    def addresses(self, index: int) -> list[int]:
        return self._arenas[index].addresses

    def inputs(self, index: int) -> list[torch.Tensor]:
        return self._arenas[index].tensors[: len(self._inputs)]

    def outputs(self, index: int) -> list[torch.Tensor]:
        """Bytes of each output of a set."""
        return self._arenas[index].bytes[len(self._inputs) :]

    def halves(self, index: int, total_bytes: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Two aligned ranges of a set's memory; copying one to the other moves ``total_bytes`` in all, reads plus
        writes (up to 512 more)."""
        memory = self._arenas[index].memory
        half = max(min(aligned(total_bytes // 2), memory.numel() // 2), 1)
        return memory[:half], memory[-half:]

    def refresh(self, seed: int, indices: Sequence[int] | None = None) -> None:
        """Writes new values into these sets (None: all): inputs rotated by :func:`rotation`, outputs poisoned."""
        for index in range(len(self)) if indices is None else indices:
            for tensor, (spec, master) in enumerate(zip(self._inputs, self._masters, strict=True)):
                shift = rotation(seed, index, tensor, spec.cosize) * spec.dtype.itemsize
                target = self._arenas[index].bytes[tensor]
                target[shift:].copy_(master[: spec.storage_bytes - shift])
                target[:shift].copy_(master[spec.storage_bytes - shift :])
            poison(self.outputs(index), seed)


def poison(tensors: Sequence[torch.Tensor], seed: int) -> None:
    """Fills byte tensors with one of :data:`_POISONS`, by ``seed``."""
    for tensor in tensors:
        tensor.fill_(_POISONS[seed % len(_POISONS)])
