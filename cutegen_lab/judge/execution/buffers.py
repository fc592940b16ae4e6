"""Memory of one execution: inputs that must not change; outputs and workspace that start poisoned."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.execution.placement import Placement, planned_placement, relocated_build
from cutegen_lab.problems.tensors import laid_out

# Byte patterns: 0xFF… is NaN in every floating-point type; 0x7B… is a large finite number in most.
POISONS = (0xFF, 0x7B)

LendMemory = Callable[[Sequence[int]], Sequence[torch.Tensor] | None]
"""Lends device memory of each size in bytes; None if the device lends none."""

_CACHED_BYTES = 2 << 30
# Range of poison bytes: repeated, each is a large finite number that a kernel cannot predict.
_LARGE_BYTES = (0x51, 0x7B)


def random_poison(generator: torch.Generator) -> int:
    """A random poison byte for a run that is not repeated; never the pattern of a NaN that a kernel computes."""
    return int(torch.randint(_LARGE_BYTES[0], _LARGE_BYTES[1] + 1, (), generator=generator))


@dataclass(frozen=True)
class _Slot:
    """Memory of one tensor: a guard, the tensor (its gaps filled with noise), a guard."""

    spec: TensorSpec
    memory: torch.Tensor  # as bytes
    offset: int

    @property
    def raw(self) -> torch.Tensor:
        return self.memory[self.offset : self.offset + self.spec.storage_bytes]

    @property
    def tensor(self) -> torch.Tensor:
        return laid_out(self.raw, self.spec)

    def fill_gaps(self, seed: int) -> None:
        """Fills gaps with noise that does not depend on the address: a kernel that uses it gives the same wrong result
        each time."""
        if self.spec.strides:
            self.raw.random_(0, 256, generator=torch.Generator(self.raw.device).manual_seed(seed))

    def guards(self) -> bytes:
        """Digest of both guards."""
        digest = hashlib.blake2b(digest_size=16)
        for guard in (self.memory[: self.offset], self.memory[self.offset + self.spec.storage_bytes :]):
            digest.update(memoryview(guard.cpu().numpy()))
        return digest.digest()


class Buffers:
    """A workload's tensors, placed by ``placement`` (None: in the plan's order, without guards).

    ``poison``: byte that fills outputs and workspace. ``build``, ``tensors`` and ``views`` are what a device takes;
    ``outputs`` are in the workload's order. If ``loan`` lends memory of a device, the tensors are already on the device
    (``lent``), otherwise in host memory.
    """

    def __init__(
        self, workload: Workload, build: Build, inputs: Sequence[torch.Tensor], poison: int,
        placement: Placement | None = None, guard_seed: int = 0, loan: LendMemory = lambda sizes: None,
    ) -> None:  # fmt: skip
        specs = workload.tensors + build.plan.workspace
        place = placement or planned_placement(len(specs))
        self.poison = poison
        self.build = relocated_build(build, place, len(inputs)) if placement else build
        generator = torch.Generator().manual_seed(guard_seed)
        sizes = [place.offsets[i] + specs[i].storage_bytes + place.tail for i in place.order]
        lent = loan(sizes)
        self.lent = lent is not None
        memory = lent or [torch.empty(size, dtype=torch.uint8, device="cpu") for size in sizes]
        slots = [
            _slot(spec, memory[place.position[i]], place.offsets[i], generator, poison) for i, spec in enumerate(specs)
        ]
        for slot in slots[: len(inputs)]:
            slot.fill_gaps(guard_seed)
        for slot, value in zip(slots, inputs, strict=False):
            slot.tensor.copy_(value)
        self._inputs = [(slot, _expected_bytes(slot, value)) for slot, value in zip(slots, inputs, strict=False)]
        self._placed = [slots[i] for i in place.order]
        self.tensors: tuple[TensorSpec, ...] = tuple(slot.spec for slot in self._placed)
        self.outputs = [slot.tensor for slot in slots[len(inputs) : len(workload.tensors)]]
        self._guards = [slot.guards() for slot in self._placed]

    @property
    def views(self) -> list[memoryview]:
        """Writable bytes of every tensor's memory."""
        return [memoryview(slot.memory.numpy()) for slot in self._placed]

    def keep_outputs(self) -> None:
        """Copies outputs out of lent memory, which will be lent again."""
        if self.lent:
            self.outputs = [output.clone() for output in self.outputs]

    def modified_input(self) -> str | None:
        """Name of the first input whose bytes changed."""
        return next((slot.spec.name for slot, given in self._inputs if not _same_bytes(slot.raw, given)), None)

    def broken_guard(self) -> str | None:
        """Name of the first tensor with a changed guard."""
        pairs = zip(self._placed, self._guards, strict=True)
        return next((slot.spec.name for slot, before in pairs if slot.guards() != before), None)

    def unwritten(self, index: int) -> torch.Tensor:
        """Elements of output ``index`` that still hold the poison (flat booleans)."""
        output = self.outputs[index]
        raw = output.reshape(-1).view(torch.uint8).reshape(output.numel(), output.element_size())
        return (raw == self.poison).all(dim=1)


class BufferCache:
    """Buffers of the last prediction, reused by the next with tensors of the same sizes: filling them takes ten times
    as long as counting a sample of the blocks. A prediction hardly depends on their values, but inputs that a build
    wrote to are not reused."""

    def __init__(self) -> None:
        self._last: list[Buffers] = []

    def __reduce__(self) -> tuple[type[BufferCache], tuple[()]]:
        return BufferCache, ()  # pickled without its tensors: another process has its own

    def take(self, workload: Workload, build: Build, seed: int) -> Buffers:
        """The cached buffers if their tensors are equal, otherwise new ones."""
        with suppress(IndexError):
            last = self._last.pop()  # one atomic step, so that two threads never share buffers
            if last.tensors == workload.tensors + build.plan.workspace:
                return last
        return Buffers(workload, build, fill(workload, seed), POISONS[0])

    def put_back(self, buffers: Buffers) -> None:
        """Caches ``buffers``, unless they are too large or an input was written."""
        if sum(spec.storage_bytes for spec in buffers.tensors) <= _CACHED_BYTES and buffers.modified_input() is None:
            self._last = [buffers]


def _slot(spec: TensorSpec, memory: torch.Tensor, offset: int, generator: torch.Generator, poison: int) -> _Slot:
    memory.fill_(poison)
    for guard in (memory[:offset], memory[offset + spec.storage_bytes :]):
        guard.copy_(torch.empty(guard.numel(), dtype=torch.uint8, device="cpu").random_(0, 256, generator=generator))
    return _Slot(spec, memory, offset)


def _expected_bytes(slot: _Slot, value: torch.Tensor) -> torch.Tensor:
    """Bytes that an input must keep: those of ``value``, which no device can write to, or a copy with gaps."""
    return slot.raw.clone() if slot.spec.strides else value.reshape(-1).view(torch.uint8).to(slot.raw.device)


def _same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether all bytes are equal; compared as words where possible, which is several times faster."""
    words = a.numel() // 8 * 8
    return bool(
        torch.equal(a[:words].view(torch.int64), b[:words].view(torch.int64)) and torch.equal(a[words:], b[words:])
    )
