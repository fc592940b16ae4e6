"""Counters in a profiler's units: the code that counts while a kernel runs.

Every memory instruction is a *site* with its own counts; generated code sets the current site. Instructions are counted
by basic block. :mod:`totals` sums the counts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cutegen_lab.core.trial import AccessWay, SharedAccess
from cutegen_lab.emulator.counters import copy_wavefronts
from cutegen_lab.emulator.counters.access_cost import l1_wavefronts, phases, sectors_and_lines, wavefronts
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.roles import Group

FIELDS = (
    "global_load_requests", "global_load_sectors", "global_load_bytes",
    "global_store_requests", "global_store_sectors", "global_store_bytes",
    "global_atomic_requests", "global_atomic_sectors", "global_atomic_bytes",
    "bulk_loads", "bulk_load_sectors", "bulk_load_bytes",
    "bulk_stores", "bulk_store_sectors", "bulk_store_bytes",
    "shared_load_requests", "shared_load_wavefronts", "shared_load_phases",
    "shared_store_requests", "shared_store_wavefronts", "shared_store_phases",
    "shared_copy_requests", "shared_copy_wavefronts", "shared_copy_phases",
    "shared_atomic_requests", "cluster_requests", "global_load_lines", "global_store_lines",
    "shared_copies_past_l1", "global_load_wavefronts", "global_load_new_lines",
)  # fmt: skip
_LOAD, _STORE, _ATOMIC, _BULK_LOAD, _BULK_STORE, _SHARED_LOAD, _SHARED_STORE, _SHARED_COPY, _SHARED_ATOMIC = range(
    0, 27, 3
)
_CLUSTER, _LOAD_LINES, _STORE_LINES, _PAST_L1, _LOAD_WAVEFRONTS, _NEW_LINES = range(_SHARED_ATOMIC + 1, len(FIELDS))
_LINES = {"load": (_LOAD_LINES,), "store": (_STORE_LINES,), "atomic": (_LOAD_LINES, _STORE_LINES)}
_GLOBAL = {"load": _LOAD, "store": _STORE, "atomic": _ATOMIC}
_BULK = {"load": _BULK_LOAD, "store": _BULK_STORE}
_SHARED = {"load": _SHARED_LOAD, "store": _SHARED_STORE}

_LINE_BYTES = 128
_SLOT_BITS = 24  # low bits of an address that its slot leaves out
# Bytes, a quarter of L2: shorter ranges stay in L2, for example a table that all blocks read.
_WARM_STRETCH = 12 << 20
# Bytes, an eighth of L1: shorter ranges stay in L1, for example weights that every block reads again.
HOT_STRETCH = 32 << 10
_RECENT, _SAMPLED = 8, 8  # to find reuse: number of last loads that are compared, and of their lanes

Way = Literal["load", "store"]
_MATRICES: dict[Way, AccessWay] = {"load": "ldmatrix", "store": "stmatrix"}
Site = list[int]
"""Counts of one instruction, in the order of :data:`FIELDS`."""


@dataclass
class Counters:
    """Sums over the blocks that ran. A *request* is one warp's access; *sectors* are distinct 32-byte pieces of it.

    ``here`` is the site of the instruction that runs. ``block_warps[b]`` and ``block_lanes[b]`` are how often warps
    and lanes executed basic block ``b``. ``by_slot``: sectors that cross L2, by "load" or "store" and *slot* (the
    address without its lowest :data:`_SLOT_BITS` bits), which tells tensors apart. ``loaded``: (lowest address, highest
    address, requested bytes) by slot, from the first and last lane of each group.
    """

    count: int = 0  # number of sites
    blocks: int = 0  # blocks of the grid that ran
    by_slot: Counter[tuple[str, int]] = field(default_factory=Counter)
    loaded: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    loaded_by: set[tuple[int, int]] = field(default_factory=set)  # (identity of a site, slot) of each load
    block_warps: Counter[int] = field(default_factory=Counter)
    block_lanes: Counter[int] = field(default_factory=Counter)
    expectations: int = 0  # executions of expect_tx by a thread
    expected_bytes: int = 0
    expected_at: Counter[int] = field(default_factory=Counter)  # expected bytes by the mbarrier's index in its block
    products: Counter[int] = field(default_factory=Counter)  # wgmma products by block of the grid
    conflicting: dict[int, SharedAccess] = field(default_factory=dict)  # by identity of a site: its first bank conflict
    _recent: deque[tuple[int, frozenset[int]]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    sites: list[Site] = field(init=False)
    here: Site = field(init=False)

    def __post_init__(self) -> None:
        self.sites = [[0] * len(FIELDS) for _ in range(self.count)]
        self.here = [0] * len(FIELDS)

    def _add(self, at: int, requests: int, units: int, rest: int) -> None:
        here = self.here
        here[at] += requests
        here[at + 1] += units
        here[at + 2] += rest

    def access(self, kind: str, g: Group, address: Array, width: int) -> None:
        """Counts one global "load", "store" or "atomic" of ``width`` bytes per lane."""
        touched, lines = sectors_and_lines(g.gid, address, g.whole())
        for at in _LINES[kind]:
            self.here[at] += lines
        if kind == "load":
            self.here[_LOAD_WAVEFRONTS] += l1_wavefronts(g.gid, address, width, g.whole())
            self.here[_NEW_LINES] += lines if self._new(g, address) else 0
        for slot, first, last, lanes, sectors in _by_slot(g, address, touched):
            if kind == "load":
                self._loaded(slot, first, last, lanes * width)
            for way in ("load", "store") if kind == "atomic" else (kind,):
                self.by_slot[way, slot] += sectors
        self._add(_GLOBAL[kind], g.warps(), touched, g.n * width)

    def shared(self, kind: Way, g: Group, index: Array, width: int) -> None:
        """Counts one "load" or "store" of shared memory at ``index``, in units of ``width`` bytes."""
        found, ideal = wavefronts(g.gid, index, width, g.whole())
        self._add(_SHARED[kind], g.warps(), found, ideal)
        if found > ideal and id(self.here) not in self.conflicting:
            of_warps = ((g.gid[here], index[here]) for here in _by_warp(g.gid))
            costs = ((gid & 31, at, wavefronts(gid, at, width, len(gid) == 32)) for gid, at in of_warps)
            self._keep_first_conflict(kind, width, costs)

    def copy(self, g: Group, index: Array, address: Array, moved: Array, width: int, past_l1: bool) -> None:
        """Counts one cp.async to ``index`` of shared memory; lanes that are not ``moved`` write zeros."""
        found, warps = copy_wavefronts.wavefronts(g.gid, index, address, moved, width, past_l1), g.warps()
        self._add(_SHARED_COPY, warps, *found)
        self.here[_PAST_L1] += warps if past_l1 else 0

    def matrices(self, kind: Way, warps: int, index: Array) -> None:
        """Counts one ldmatrix or stmatrix of ``warps``, at 16-byte rows ``index``, eight per matrix."""
        found, ideal = phases(index.reshape(-1, 8), 8)
        self._add(_SHARED[kind], warps, found, ideal)
        if found > ideal and id(self.here) not in self.conflicting:
            of_warps = index.reshape(warps, -1)
            costs = ((np.arange(len(at)), at, phases(at.reshape(-1, 8), 8)) for at in of_warps)
            self._keep_first_conflict(_MATRICES[kind], 16, costs)

    def _keep_first_conflict(
        self, way: AccessWay, width: int, of_warps: Iterable[tuple[Array, Array, tuple[int, int]]]
    ) -> None:
        """Keeps the access of the first warp with bank conflicts. ``of_warps``: (lanes, indices, (wavefronts, ideal))
        of each."""
        for lanes, index, (found, ideal) in of_warps:
            if found > ideal:
                addresses = index.astype(np.int64) * width
                offsets = addresses - addresses.min() // _LINE_BYTES * _LINE_BYTES
                kept = SharedAccess(0, way, width, tuple(lanes.tolist()), tuple(offsets.tolist()), found, ideal)
                self.conflicting[id(self.here)] = kept
                return

    def cluster(self, g: Group) -> None:
        """Counts one load or store by a shared::cluster address, which goes through another path."""
        self.here[_CLUSTER] += g.warps()

    def shared_atomic(self, g: Group) -> None:
        self.here[_SHARED_ATOMIC] += g.warps()

    def bulk(self, kind: str, address: int, touched: int, size: int, times: int = 1) -> None:
        """Counts ``times`` bulk copies, which each move ``size`` bytes of global memory in ``touched`` sectors."""
        self.by_slot[kind, address >> _SLOT_BITS] += touched * times
        self._add(_BULK[kind], times, touched * times, size * times)

    def _new(self, g: Group, address: Array) -> bool:
        """True if the group's first lanes load mostly sectors that the warp's recent loads did not touch."""
        sectors = frozenset((np.atleast_1d(address)[:_SAMPLED] >> np.uint64(5)).tolist())
        who = int(g.gid[0]) >> 5
        again = any(who == of and 2 * len(sectors & before) >= len(sectors) for of, before in self._recent)
        self._recent.append((who, sectors))
        return not again

    def _loaded(self, slot: int, first: int, last: int, asked: int) -> None:
        low, high, before = self.loaded.get(slot, (first, first, 0))
        self.loaded[slot] = min(low, first, last), max(high, first, last), before + asked
        self.loaded_by.add((id(self.here), slot))

    def hot_bytes(self) -> int:
        """Bytes loaded from address ranges that are short enough to stay in L1."""
        return sum(asked for low, high, asked in self.loaded.values() if high - low < HOT_STRETCH)

    def warm_bytes(self, scale: float) -> float:
        """Bytes loaded again, after the first time, from tensors that fit in L2 but not in L1, for ``scale`` times the
        blocks that ran."""
        found = 0.0
        for slot, (low, high, asked) in self.loaded.items():
            alone = slot - 1 not in self.loaded and slot + 1 not in self.loaded
            if alone and HOT_STRETCH <= high - low < _WARM_STRETCH:
                found += max(asked * scale - (high - low), 0.0)
        return found

    def hot_stretch(self) -> int:
        """Total length of the ranges of :meth:`hot_bytes`, in bytes."""
        lengths = (high - low for low, high, _ in self.loaded.values())
        return sum(length for length in lengths if length < HOT_STRETCH)

    def hot_sites(self) -> frozenset[int]:
        """Sites that load from ranges of :meth:`hot_bytes` only."""
        hot = {slot for slot, (low, high, _) in self.loaded.items() if high - low < HOT_STRETCH}
        every = {site for site, _ in self.loaded_by}
        cold = {site for site, slot in self.loaded_by if slot not in hot}
        return frozenset(number for number, site in enumerate(self.sites) if id(site) in every - cold)

    def loads(self, sites: Sequence[int]) -> tuple[int, int]:
        """(accesses by the most executed of ``sites``, bytes that all of them requested)."""
        each = [self.sites[site] for site in sites]
        return max((site[_LOAD] for site in each), default=0), sum(site[_LOAD + 2] for site in each)

    def expect(self, g: Group, slot: Array, size: Array, stride: int) -> None:
        """Counts expect_tx of ``size`` bytes (one value, or by lane) on the mbarriers at ``slot`` (in units of 8 bytes;
        a block's window has ``stride`` bytes)."""
        sizes = np.broadcast_to(np.asarray(size), (g.n,)).tolist()
        places = np.broadcast_to(slot, (g.n,)) % (stride >> 3)
        self.expectations += g.n
        self.expected_bytes += sum(sizes)
        for place, expected in zip(places.tolist(), sizes, strict=True):
            self.expected_at[place] += expected

    def stages(self) -> float:
        """Stages of the pipeline of bulk copies: number of mbarriers with over half the bytes of the busiest one. 0.0
        without any."""
        most = max(self.expected_at.values(), default=0)
        return float(sum(2 * expected > most for expected in self.expected_at.values()))

    def busiest_block(self) -> float:
        """Number of wgmma products of the busiest block, divided by the mean of the blocks that ran: persistent blocks
        may differ by one tile. 1.0 without products."""
        return max(self.products.values()) * self.blocks / self.products.total() if self.products else 1.0

    def elapsed(self) -> int:
        """Time that clock registers have advanced: a count that never decreases."""
        return sum(self.block_warps.values())


class Uncounted(Counters):
    """Counts instructions, on which clock registers depend, and no accesses."""

    def access(self, kind: str, g: Group, address: Array, width: int) -> None: ...

    def shared(self, kind: Way, g: Group, index: Array, width: int) -> None: ...

    def copy(self, g: Group, index: Array, address: Array, moved: Array, width: int, past_l1: bool) -> None: ...

    def matrices(self, kind: Way, warps: int, index: Array) -> None: ...

    def cluster(self, g: Group) -> None: ...

    def shared_atomic(self, g: Group) -> None: ...

    def bulk(self, kind: str, address: int, touched: int, size: int, times: int = 1) -> None: ...

    def expect(self, g: Group, slot: Array, size: Array, stride: int) -> None: ...


def _by_warp(gid: Array) -> Iterator[Array]:
    """For each warp, the mask of its lanes."""
    warp = gid >> 5
    return (warp == number for number in np.unique(warp))


def _by_slot(g: Group, address: Array, touched: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(slot, first and last address, lanes, distinct sectors) of each slot that lanes access: one load may
    access two tensors if the compiler selects the address."""
    slots = address >> np.uint64(_SLOT_BITS)
    if slots.min() == slots.max():
        yield int(slots[0]), int(address[0]), int(address[-1]), g.n, touched
        return
    for slot in np.unique(slots):
        here = slots == slot
        there = address[here]
        yield int(slot), int(there[0]), int(there[-1]), len(there), sectors_and_lines(g.gid[here], there, False)[0]
