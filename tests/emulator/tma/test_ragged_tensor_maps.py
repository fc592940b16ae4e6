"""Tensor maps larger than any tensor, for rows of packed sequences: their addresses wrap around 2^64 or begin far below
the tensor (quack's ``create_ragged_tensor_for_tma``)."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.buffer import Buffer
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.memory.global_memory import GlobalMemory
from cutegen_lab.emulator.tma.ragged import SPAN_BYTES, RaggedTensor
from cutegen_lab.emulator.tma.tensor_map import TensorMap

TOTAL, COLUMNS = 50, 16  # float16
PITCH = 2 * COLUMNS
BIG, MOST = 1 << 30, (1 << 31) - 1
BOX = (COLUMNS, 8)


def memory() -> tuple[GlobalMemory, Buffer, np.ndarray]:
    found = GlobalMemory()
    data = np.arange(TOTAL * COLUMNS, dtype=np.uint16)
    return found, found.add("x", data.view(np.uint8)), data.reshape(TOTAL, COLUMNS)


def below(base: int) -> TensorMap:
    """One dimension more; the map begins ``BIG`` rows below the tensor."""
    sizes, strides = (COLUMNS, BIG, MOST), (2, PITCH, PITCH)
    return TensorMap((base - BIG * PITCH) % 2**64, "f16", sizes, strides, (*BOX, 1), (1, 1, 1), 16)


def around(base: int) -> TensorMap:
    """Two dimensions more, whose strides go around 2^64 together."""
    sizes, strides = (COLUMNS, BIG, MOST, MOST), (2, PITCH, 2**34 - PITCH, PITCH)
    return TensorMap(base, "f16", sizes, strides, (*BOX, 1, 1), (1, 1, 1, 1), 16)


def coordinates(tmap: TensorMap, first: int, length: int, row: int) -> tuple[int, ...]:
    """Of row ``row`` of a sequence of ``length`` rows that begins at row ``first`` of the tensor."""
    last = (first + length,) if tmap.rank == 3 else (BIG, first + length)
    return (0, BIG - length + row, *last)


@pytest.mark.parametrize("make", [below, around])
def test_rows_behind_a_sequence_are_zeros_and_stay_unwritten(make: type) -> None:
    where, buffer, data = memory()
    tmap = make(buffer.base)
    assert tmap.span >= SPAN_BYTES
    tensor = RaggedTensor(tmap, where)
    pieces, _, size = tensor.load(0, coordinates(tmap, 10, 13, 8))  # its rows 8 to 12, and three that are not its own
    box = pieces.view(np.uint16).reshape(8, COLUMNS)
    assert np.array_equal(box[:5], data[18:23]) and not box[5:].any() and size == 5 * PITCH
    before = data.copy()
    new = np.full((8, COLUMNS), 7, np.uint16)
    tensor.store(0, coordinates(tmap, 10, 13, 8), new.reshape(-1).view(np.complex128), None)
    assert (
        (data[18:23] == 7).all() and np.array_equal(data[23:], before[23:]) and np.array_equal(data[:18], before[:18])
    )
    tensor.store(0, coordinates(tmap, 10, 13, 8), new.reshape(-1).view(np.complex128), np.add)
    assert (data[18:23] == 14).all() and np.array_equal(data[23:], before[23:])


def test_a_box_that_lies_in_no_tensor_is_named() -> None:
    where, buffer, _ = memory()
    tmap = below(buffer.base)
    with pytest.raises(Trap) as caught:
        RaggedTensor(tmap, where).load(0, coordinates(tmap, 40, 13, 8))  # beyond the last row
    assert caught.value.verdict is Verdict.OUT_OF_BOUNDS


def test_what_is_read_only_is_not_written() -> None:
    where, buffer, _ = memory()
    buffer.constant = True
    tmap = below(buffer.base)
    with pytest.raises(Trap) as caught:
        RaggedTensor(tmap, where).store(0, coordinates(tmap, 0, 8, 0), np.zeros(16, np.complex128), None)
    assert caught.value.verdict is Verdict.INPUT_MODIFIED
