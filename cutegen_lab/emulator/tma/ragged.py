"""Ragged tensors: tensor maps larger than their tensor, for packed sequences of different lengths.

A copy uses a coordinate so large that the box lies in the tensor again: because addresses wrap at 2^64, or because the
map's base is far below the tensor. The coordinate puts the end of a sequence at the end of the map's dimension, so that
rows of the next sequence are not written (Triton's and quack's ragged tensors). Which tensor a box lies in is known
only when it is copied.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.memory.global_memory import GlobalMemory, Lanes
from cutegen_lab.emulator.ptx.types import RAW, Array
from cutegen_lab.emulator.tma.box_copy import MappedTensor, Reduction, round_tf32
from cutegen_lab.emulator.tma.tensor_map import TensorMap

SPAN_BYTES = 1 << 36  # larger than any judged tensor


class RaggedTensor(MappedTensor):
    def __init__(self, tmap: TensorMap, memory: GlobalMemory) -> None:
        self.map, self._memory = tmap, memory
        self._raw = RAW[tmap.element_bytes]
        self._plain = all(step == 1 for step in tmap.steps)
        self._most = tuple(n - c for n, c in zip(tmap.sizes, tmap.counts, strict=True))
        self._box = tuple(slice(0, n) for n in tmap.counts[::-1])

    def load(
        self, gid: int, coordinates: tuple[int, ...], until: tuple[int, int] | None = None
    ) -> tuple[Array, int, int]:
        source, target, _ = self._slices(coordinates)
        box: Array = np.full(self.map.counts[::-1], self._fill(), self._raw)
        if target is not None:
            box[target] = self._read(gid, source, until).reshape(box[target].shape)
        sectors, size = self._traffic(source, target, stores=False)
        if self.map.tf32:
            box = round_tf32(box)
        return box.reshape(-1).view(np.complex128), sectors, size

    def store(self, gid: int, coordinates: tuple[int, ...], pieces: Array, reduce: Reduction | None) -> tuple[int, int]:
        source, target, _ = self._slices(coordinates)
        self._legal_store(gid, coordinates)
        if target is None:
            return 0, 0
        values = pieces.view(self._raw).reshape(self.map.counts[::-1])[target].ravel()
        if reduce is not None:
            values = reduce(self._read(gid, source), values)
        at = self._addresses(source)
        self._memory.store(Lanes(np.full(len(at), gid), hardware=True), at, self.map.element_bytes, values)
        return self._traffic(source, target, stores=True)

    def starts(self, coordinates: Array) -> Array | None:
        return None  # boxes are moved one by one

    def _read(self, gid: int, source: tuple[slice, ...], until: tuple[int, int] | None = None) -> Array:
        at = self._addresses(source)
        return self._memory.load(Lanes(np.full(len(at), gid), hardware=True, until=until), at, self.map.element_bytes)
