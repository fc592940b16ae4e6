"""A buffer of global memory: its bytes and their shadow state."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_lab.emulator.ptx.types import Array


@dataclass
class Buffer:
    """One tensor. ``written``: a bool for each byte, or None if reads need no check. ``constant``: read-only."""

    name: str
    base: int
    data: Array
    views: dict[int, Array]
    written: Array | None = None
    constant: bool = False
    writers: Array | None = None  # last writer of each cell, for :class:`GlobalRaces`
    readers: tuple[Array, Array] | None = None  # readers of each cell, for :class:`GlobalRaces`
    owners: Array | None = None  # cluster that stored each cell, for :class:`StoreOwners`
    initial: Array | None = None  # contents before the first launch, if kept
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = self.base + len(self.data)
