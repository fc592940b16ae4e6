"""A buffer of global memory: its bytes, and what is remembered of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_lab.emulator.ptx.types import Array


@dataclass
class Buffer:
    """One tensor. ``written`` has a bool a byte, or is None where reads need no check. ``constant``: not to write."""

    name: str
    base: int
    data: Array
    views: dict[int, Array]
    written: Array | None = None
    constant: bool = False
    writers: Array | None = None  # who wrote each byte, where :class:`BlockRaces` looks …
    readers: tuple[Array, Array] | None = None  # … and who read it, where anyone has
    owners: Array | None = None  # which cluster stored each cell, where :class:`Owners` looks
    initial: Array | None = None  # what it held before the first launch, where that was kept
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = self.base + len(self.data)
