"""Tiles in shared memory: operands of wgmma and boxes of TMA, under their swizzle modes.

Source: PTX ISA, "Shared Memory Matrix Layout" and "Swizzling Modes"; CUDA driver API, cuTensorMapEncodeTiled (limits of
a box); CUTLASS, cute/atom/mma_traits_sm90_gmma.hpp (layout atoms).
"""

from __future__ import annotations

from math import prod

from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.algebra import blocked_product
from cutegen_lab.layouts.fragments import SM90, Instruction
from cutegen_lab.layouts.layout import AnyLayout, Layout, Swizzled
from cutegen_lab.layouts.notation import SWIZZLE_MODES, swizzle_mode

_WIDTH = {"none": 16, "32B": 32, "64B": 64, "128B": 128}  # bytes of a row of the pattern
_MOST_EXTENT, _MOST_RANK = 256, 5  # maximum extent of a dimension of a box, and maximum number of dimensions


def checked_mode(name: str) -> str:
    if name not in SWIZZLE_MODES:
        raise InputError(f"{name!r} is no swizzle mode", f"Use {', '.join(SWIZZLE_MODES)}.")
    return name


def smem_atom(mode: str, itemsize: int, k_major: bool = True) -> AnyLayout:
    """Layout atom of a swizzle mode, (rows, K): eight rows with K contiguous, or eight elements of K with rows
    contiguous."""
    width = _WIDTH[checked_mode(mode)] // itemsize
    layout = Layout((8, width), (width, 1)) if k_major else Layout((width, 8), (1, width))
    return _over(mode, itemsize, layout)


def operand_tile(instruction: Instruction, operand: str, mode: str, k_major: bool = True) -> AnyLayout:
    """A or B of wgmma: :func:`smem_atom` repeated over the rows, and along K to at least the K of the instruction.

    Raises InputError for another instruction or operand, or rows that the pattern does not divide.
    """
    if instruction.arch != SM90 or operand not in ("A", "B"):
        raise InputError(f"{operand} of {instruction.arch} {instruction} is in registers", "Leave out the swizzle.")
    m, n, k = instruction.shape
    atom = smem_atom(mode, instruction.itemsize, k_major)
    plain = atom.layout if isinstance(atom, Swizzled) else atom
    rows, depth = (mode_.size for mode_ in plain.modes)
    extent = m if operand == "A" else n
    if extent % rows:
        message = f"{extent} rows of {operand} are not whole patterns of {rows}"
        raise InputError(message, "Use a narrower swizzle mode, or K-major.")
    repeats = Layout.dense((extent // rows, -(-k // depth)))
    return _over(mode, instruction.itemsize, blocked_product(plain, repeats))


def box(extents: tuple[int, ...], itemsize: int, mode: str) -> AnyLayout:
    """A box of TMA in shared memory: its layout of (…, rows, columns), columns contiguous.

    Raises InputError for a box that cuTensorMapEncodeTiled refuses.
    """
    row_bytes = extents[-1] * itemsize
    if len(extents) > _MOST_RANK or not all(1 <= extent <= _MOST_EXTENT for extent in extents):
        raise InputError(f"a box {'x'.join(map(str, extents))} is too large", "Use up to 5 extents, of 1 to 256 each.")
    if row_bytes % 16:
        message = f"the innermost extent of the box is {row_bytes} bytes"
        raise InputError(message, f"Use a multiple of 16 bytes: {max(1, 16 // itemsize)} elements.")
    if checked_mode(mode) != "none" and row_bytes > _WIDTH[mode]:
        message = f"the innermost extent of the box is {row_bytes} bytes, wider than the {mode} of its swizzle"
        raise InputError(message, f"Use at most {_WIDTH[mode] // itemsize} elements, or several boxes.")
    strides = tuple(prod(extents[at + 1 :]) for at in range(len(extents)))
    layout = Layout(extents, strides) if len(extents) > 1 else Layout((1, *extents), (0, 1))
    if len(extents) > 2:  # outer extents become rows, the innermost fastest
        rows = Layout(extents[-2::-1], strides[-2::-1])
        layout = Layout.joined(rows, Layout(extents[-1], 1))
    return _over(mode, itemsize, layout)


def _over(mode: str, itemsize: int, layout: Layout) -> AnyLayout:
    swizzle = swizzle_mode(mode, itemsize)
    return layout if swizzle is None else Swizzled(swizzle, 0, layout)
