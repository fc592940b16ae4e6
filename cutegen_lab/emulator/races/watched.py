"""The part of a CTA batch that race detection needs, as protocols."""

from __future__ import annotations

from typing import Protocol

from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.causality import Causality
from cutegen_lab.emulator.races.vector_clock import VectorClocks
from cutegen_lab.emulator.roles import Blocks


class SharedBytes(Protocol):
    """Shared memory of all blocks, one window after another."""

    first: int  # first byte of a window that a kernel may use
    stride: int  # bytes from one window to the next

    @property
    def data(self) -> Array: ...  # every byte

    @property
    def views(self) -> dict[int, Array]: ...  # ``data`` as elements of each access width


class Phases(Protocol):
    """The mbarriers."""

    @property
    def age(self) -> Array: ...  # by slot: phases completed


class OpenedBarrier(Protocol):
    """The cluster barrier."""

    @property
    def over(self) -> Array: ...  # by block: clock of accesses before arrivals that it has waited for


class CopiesToShared(Protocol):
    """Bulk copies into shared memory."""

    def exit(self, block: int) -> None: ...  # traps if a copy to ``block``, which ends, is in flight


class WatchedBlocks(Blocks, Protocol):
    """A CTA batch in race-detection mode."""

    warps_seed: int  # seed of the interleaving of warps; 0 for lockstep
    clocks: VectorClocks | None  # clocks of the blocks' warps
    causality: Causality | None  # set if strong operations may order others

    @property
    def shared(self) -> SharedBytes: ...

    @property
    def mbarriers(self) -> Phases: ...

    @property
    def cluster_barrier(self) -> OpenedBarrier: ...

    @property
    def bulk(self) -> CopiesToShared: ...
