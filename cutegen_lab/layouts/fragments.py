"""Fragments of tensor-core instructions as thread-value layouts.

Source: PTX ISA, "Matrix Fragments for mma" (mma.sync, sm_80 and later) and "Register Fragments and Shared Memory Matrix
Layouts" (wgmma, sm_90a). With thread = 4q + p, and E elements of A or B in a 32-bit register, A has rows q, q + 8 and
columns E·p …, repeated after 4·E; B has the same in N and K; C has rows q, q + 8 and columns 2p, 2p + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.layouts.algebra import thread_value
from cutegen_lab.layouts.int_tuple import IntTuple, modes
from cutegen_lab.layouts.layout import Layout

TF32 = "tf32"
_SMALL = dict.fromkeys(("f8e4m3fn", "f8e5m2", "i8", "u8"), 1)
ITEMSIZE = {"f16": 2, "bf16": 2, TF32: 4, **_SMALL}
"""Bytes per element of A and B, by type."""
_SM80_DEPTHS = {1: (16, 32), 2: (8, 16), 4: (4, 8)}  # legal K of mma.sync, by itemsize
WGMMA_BYTES = 32
"""Bytes along K of one wgmma."""
SM80, SM90 = "sm80", "sm90"


@dataclass(frozen=True)
class Instruction:
    """A tensor-core instruction. Raises InputError for one that does not exist."""

    arch: str
    shape: tuple[int, int, int]
    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in ITEMSIZE:
            raise InputError(
                f"no known tensor-core instruction takes {self.dtype!r}",
                f"{did_you_mean(self.dtype, ITEMSIZE)} Use {', '.join(ITEMSIZE)}.".strip(),
            )
        if self.arch not in (SM80, SM90):
            raise InputError(
                f"no instructions are known for {self.arch!r}", f"Use {SM80} (mma.sync) or {SM90} (wgmma)."
            )
        m, n, k = self.shape
        if self.arch == SM80 and ((m, n) != (16, 8) or k not in _SM80_DEPTHS[self.itemsize]):
            depths = " or ".join(f"16x8x{depth}" for depth in _SM80_DEPTHS[self.itemsize])
            raise InputError(f"mma.sync of {self.dtype} has no shape {self}", f"Use {depths}.")
        if self.arch == SM90 and (m != 64 or n % 8 or not 8 <= n <= 256 or k * self.itemsize != WGMMA_BYTES):
            depth = WGMMA_BYTES // self.itemsize
            raise InputError(f"wgmma of {self.dtype} has no shape {self}", f"Use 64xNx{depth}, N in steps of 8 to 256.")

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    def __str__(self) -> str:
        return "x".join(map(str, self.shape))


@dataclass(frozen=True)
class Fragment:
    """``layout``: (thread, value) → row + ``rows`` · column of an operand."""

    title: str
    rows: int
    columns: int
    layout: Layout

    def owners(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(thread, value) of each (row, column); the first one if several hold the element."""
        threads, values = (mode.size for mode in self.layout.modes)
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for value in range(values):
            for thread in range(threads):
                index = self.layout((thread, value))
                found.setdefault((index % self.rows, index // self.rows), (thread, value))
        return found


def fragment(instruction: Instruction, operand: str) -> Fragment:
    """Registers of operand A, B or C (and D). Raises InputError for B of wgmma, which is in shared memory."""
    m, n, k = instruction.shape
    packed = 4 // instruction.itemsize  # elements of A or B per register
    warps = 4 if instruction.arch == SM90 else 1
    if operand == "B" and warps == 4:
        raise InputError(
            "wgmma reads B from shared memory",
            "Take A or C here; B has no registers: its tile in shared memory is shared.operand_tile().",
        )
    if operand == "C":
        return _fragment(instruction, operand, (m, n), 2, warps, ((m // warps // 8, 8), (n // 8, 8 * m)))
    extent = m if operand == "A" else n
    halves = (extent // warps // 8, 8)
    return _fragment(
        instruction, operand, (extent, k), packed, warps, (halves, (k // (4 * packed), 4 * packed * extent))
    )


def _fragment(
    instruction: Instruction, operand: str, shape: tuple[int, int], together: int, warps: int,
    further: tuple[tuple[int, int], ...],
) -> Fragment:  # fmt: skip
    """The fragment in which a thread has ``together`` neighbouring columns. ``further``: extents and strides of its
    other values."""
    rows, columns = shape
    threads = [(4, together * rows), (8, 1), *[(4, 16)] * (warps > 1)]
    values = [pair for pair in ((together, rows), *further) if pair[0] > 1]
    layout = Layout.joined(_layout(threads), _layout(values) if values else Layout(1, 0))
    name = {SM80: "mma.sync", SM90: "wgmma"}[instruction.arch]
    return Fragment(f"{operand} of {name} {instruction} {instruction.dtype}", rows, columns, layout)


def _layout(pairs: list[tuple[int, int]]) -> Layout:
    if len(pairs) == 1:
        return Layout(*pairs[0])
    return Layout(tuple(extent for extent, _ in pairs), tuple(step for _, step in pairs))


def tiled_copy(threads: Layout, values: Layout) -> Fragment:
    """Fragment of a tiled copy, from the thread and value layouts of ``cute.make_tiled_copy_tv``."""
    shape, layout = thread_value(threads, values)
    extents: tuple[IntTuple, ...] = (*modes(shape), 1)
    rows, columns = extents[0], extents[1]
    if not isinstance(rows, int) or not isinstance(columns, int) or len(modes(shape)) > 2:
        raise InputError(f"{threads} and {values} make a tile of more than 2 modes", "Use layouts of rows and columns.")
    return Fragment(f"copy by {threads} threads of {values} values", rows, columns, layout)
