"""Tensor maps as an H200's driver encodes them (tensor_maps.txt), swizzles, and TF32 rounding of loads."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from cutegen_lab.emulator.tma.box_copy import pieces, round_tf32
from cutegen_lab.emulator.tma.tensor_map import BadTensorMap, decode
from tests.emulator.tma.driver_maps import LINES

DTYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32", "f32", "f32")  # by the driver's


@pytest.mark.parametrize("line", LINES, ids=[line.split(";")[0] for line in LINES])
def test_what_the_driver_encodes(line: str) -> None:
    _, described, raw = (part.strip() for part in line.split(";"))
    kind, address, sizes, strides, box, steps, interleave, swizzle, _, fill = map(ast.literal_eval, described.split())
    if interleave:
        with pytest.raises(BadTensorMap, match="interleaved"):
            decode(bytes.fromhex(raw))
        return
    found = decode(bytes.fromhex(raw))
    assert (found.address, found.dtype) == (address, DTYPES[kind])
    assert (found.sizes, found.strides[1:]) == (tuple(sizes), tuple(strides))
    assert (found.box, found.steps) == (tuple(box), tuple(steps))
    assert (found.swizzle, found.fill_nan, found.tf32) == (16 << swizzle, bool(fill), kind in (11, 12))


def test_other_bytes_are_refused() -> None:
    with pytest.raises(BadTensorMap, match="no tensor map"):
        decode(bytes(range(64)))


@pytest.mark.parametrize("swizzle", [16, 32, 64, 128])
@pytest.mark.parametrize("offset", [0, 128, 896, 5120])
def test_a_swizzle_moves_pieces_within_its_pattern(offset: int, swizzle: int) -> None:
    found = pieces(offset, 4096, swizzle)
    assert sorted(found.tolist()) == list(range(offset // 16, offset // 16 + 256))
    for i, piece in enumerate(found.tolist()):
        row = (offset + 16 * i) // 128
        assert piece == (offset // 16 + i) ^ (row % (swizzle // 16))


def test_tf32_loads_round_as_an_h200_does() -> None:
    given = [0x3F801000, 0x3F801001, 0x3F803000, 0x3F800FFF, 0xBF803000, 0x7FC12345, 0x7F800000, 0x7F7FFFFF, 0x00001000]
    measured = [0x3F800000, 0x3F802000, 0x3F804000, 0x3F800000, 0xBF804000, 0x7FFFE000, 0x7F800000, 0x7F800000, 0]
    assert round_tf32(np.array(given, np.uint32)).tolist() == measured
