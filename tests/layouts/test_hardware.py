"""Fragments of tensor-core instructions, layout atoms and boxes, against the DSL and against the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.emulator.mma import accumulators, fragments
from cutegen_lab.emulator.tma.box_copy import pieces
from cutegen_lab.layouts.fragments import SM80, SM90, Instruction, fragment, tiled_copy
from cutegen_lab.layouts.int_tuple import flatten
from cutegen_lab.layouts.layout import Layout, Swizzled
from cutegen_lab.layouts.notation import of_addresses, swizzle_mode
from cutegen_lab.layouts.shared import box, operand_tile, smem_atom
from tests.layouts.cases import nested
from tests.layouts.dsl import dsl_answers
from tests.layouts.test_algebra import comparable

INSTRUCTIONS = [
    Instruction(SM80, (16, 8, 8), "f16"), Instruction(SM80, (16, 8, 16), "f16"), Instruction(SM80, (16, 8, 16), "bf16"),
    Instruction(SM80, (16, 8, 4), "tf32"), Instruction(SM80, (16, 8, 8), "tf32"),
    Instruction(SM80, (16, 8, 32), "f8e4m3fn"), Instruction(SM90, (64, 8, 16), "f16"),
    Instruction(SM90, (64, 128, 16), "bf16"), Instruction(SM90, (64, 256, 16), "f16"),
    Instruction(SM90, (64, 64, 32), "f8e4m3fn"), Instruction(SM90, (64, 32, 32), "i8"),
]  # fmt: skip
ATOMS = [(major, mode, dtype) for major in ("K", "MN") for mode in ("none", "32B", "64B", "128B")
         for dtype in ("f16", "f8e4m3fn", "tf32")]  # fmt: skip
ITEMSIZE = {"f16": 2, "f8e4m3fn": 1, "tf32": 4}


def test_fragments_are_the_dsls() -> None:
    cases = [
        {"operation": "atom", "arch": one.arch, "shape": one.shape, "dtype": one.dtype, "layout": [1, 0]}
        for one in INSTRUCTIONS
    ]
    for instruction, dsl in zip(INSTRUCTIONS, dsl_answers(cases), strict=True):
        operands = "AC" if instruction.arch == SM90 else "ABC"
        for operand in operands:
            layout, expected = fragment(instruction, operand).layout, dsl[operand]
            for ours, theirs in ((layout.shape, expected["shape"]), (layout.stride, expected["stride"])):
                assert flatten(ours) == flatten(nested(theirs)), (instruction, operand)


def test_accumulators_are_the_emulators() -> None:
    """mma.sync and wgmma of the emulator put each element of C where the fragment says."""
    c = fragment(Instruction(SM80, (16, 8, 16), "f16"), "C")
    numbers = np.arange(16 * 8, dtype=np.float32).reshape(1, 16, 8)
    spread = numbers.reshape(1, 16, 1, 4, 2).swapaxes(3, 4).reshape(1, 16, 8)  # in the order it takes columns
    registers = fragments.scatter(np.ascontiguousarray(spread), 2, packed=False)[0, 0]
    for (row, column), (thread, value) in c.owners().items():
        assert registers[value, thread] == numbers[0, row, column]
    wide = fragment(Instruction(SM90, (64, 64, 16), "f16"), "C")
    sums = accumulators.Accumulators(accumulators.Form(64, "f16", "f16", "f32"), 1, 128)
    at = sums.at(np.array([0]))
    sums.matrix[at] = np.arange(64 * 64, dtype=np.float32).reshape(1, 64, 64)
    held = sums.registers(np.array([0])).view(np.float32)
    for (row, column), (thread, value) in wide.owners().items():
        assert held[value, thread] == 64 * row + column


def test_layout_atoms_are_the_dsls() -> None:
    suffix = {"none": "INTER", "32B": "SW32", "64B": "SW64", "128B": "SW128"}
    cases = [
        {"operation": "smem_atom", "kind": f"{major}_{suffix[mode]}", "dtype": dtype, "layout": [1, 0]}
        for major, mode, dtype in ATOMS
    ]
    for (major, mode, dtype), dsl in zip(ATOMS, dsl_answers(cases), strict=True):
        atom = smem_atom(mode, ITEMSIZE[dtype], major == "K")
        plain = atom.layout if isinstance(atom, Swizzled) else atom
        found = {"shape": plain.shape, "stride": plain.stride}
        assert found == {name: nested(dsl[name]) for name in found}, (major, mode, dtype)
        swizzle = swizzle_mode(mode, 1)  # of addresses of bytes, as the DSL's
        assert dsl["swizzle"] == ([swizzle.bits, swizzle.base, swizzle.shift] if swizzle else [0, 4, 3])


@pytest.mark.parametrize("mode", ["none", "32B", "64B", "128B"])
def test_boxes_are_the_emulators(mode: str) -> None:
    width = {"none": 128, "32B": 32, "64B": 64, "128B": 128}[mode]
    layout = box((64, width // 2), 2, mode)
    expected = pieces(0, 64 * width, 16 if mode == "none" else width)  # of each 16 bytes of the box, in its order
    found = [layout((row, column)) * 2 // 16 for row in range(64) for column in range(0, width // 2, 8)]
    assert found == list(expected)


def test_a_box_of_three_extents_counts_its_rows_innermost_first() -> None:
    layout = box((2, 4, 8), 4, "32B")
    plain = box((8, 8), 4, "32B")
    assert [layout((row, column)) for row in range(8) for column in range(8)] == [
        plain((row, column)) for row in range(8) for column in range(8)
    ]


def test_operand_tiles_hold_each_element_once() -> None:
    instruction = Instruction(SM90, (64, 128, 16), "bf16")
    for operand, rows in (("A", 64), ("B", 128)):
        for mode in ("none", "32B", "64B", "128B"):
            for k_major in (True, False):
                tile = operand_tile(instruction, operand, mode, k_major)
                assert sorted(tile(at) for at in range(tile.size)) == list(range(tile.size))
                assert tile.size % rows == 0


def test_a_tiled_copy() -> None:
    found = tiled_copy(Layout((16, 8), (8, 1)), Layout((1, 8), (8, 1)))
    assert (found.rows, found.columns) == (16, 64) and str(found.layout) == "((8,16),8):((128,1),16)"
    assert found.owners()[1, 9] == (9, 1)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: Instruction(SM80, (16, 8, 32), "f16"), "mma.sync of f16 has no shape 16x8x32. Use 16x8x8 or 16x8x16"),
        (lambda: Instruction(SM90, (64, 12, 16), "f16"), "wgmma of f16 has no shape 64x12x16. Use 64xNx16"),
        (lambda: Instruction(SM90, (64, 8, 16), "f17"), "Did you mean 'f16'"),
        (lambda: Instruction("sm70", (16, 8, 16), "f16"), "no instructions are known for 'sm70'"),
        (lambda: fragment(Instruction(SM90, (64, 8, 16), "f16"), "B"), "wgmma reads B from shared memory"),
        (lambda: box((64, 128), 2, "128B"), "256 bytes, wider than the 128B of its swizzle. Use at most 64 elements"),
        (lambda: box((64, 12), 2, "none"), "24 bytes. Use a multiple of 16 bytes: 8 elements"),
        (lambda: box((512, 64), 2, "none"), "a box 512x64 is too large"),
        (lambda: box((64, 64), 2, "256B"), "'256B' is no swizzle mode"),
        (lambda: of_addresses(swizzle_mode("32B", 1) or pytest.fail(), 32), "would split elements"),
    ],
)
def test_what_the_hardware_does_not_have(work: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        work()


def test_comparable_forgets_strides_of_one_element_only() -> None:
    assert comparable({"shape": [1, 2], "stride": [5, 7]}) == {"shape": (1, 2), "stride": (0, 7)}
