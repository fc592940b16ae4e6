"""What a kernel did, in the units a profiler counts in: the part that runs while the kernel does.

Every instruction that touches memory is a *site* with counts of its own; generated code says which site is next, and
what is counted goes there. Instructions are counted a basic block at a time. :mod:`totals` adds all of it up.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

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

_SLOT_BITS = 24  # of an address, within a tensor's memory
_WARM_STRETCH = 12 << 20  # bytes, a quarter of L2: a table that all blocks read, say
HOT_STRETCH = 32 << 10  # bytes, an eighth of L1: a row's weights, say, which every block reads again
_RECENT, _SAMPLED = 8, 8  # loads of a warp, and lanes of each, that tell whether one touches what others just did

Site = list[int]
"""Counts of one instruction, in the order of :data:`FIELDS`."""


@dataclass
class Counters:
    """Sums over the blocks that ran. A *request* is one warp's access; *sectors* are distinct 32-byte pieces of it.

    ``here`` is the site of the instruction that runs. ``block_warps[b]`` is how often a warp executed basic block
    ``b``, ``block_lanes[b]`` how often a lane did. ``by_slot`` splits the sectors that cross L2 by ("load" or "store",
    the address without its lowest :data:`_SLOT_BITS`), which tells tensors apart; ``loaded`` has (lowest, highest,
    bytes asked for) by the latter, where a group's first and last lane stand for all of it.
    """

    count: int = 0  # of sites
    blocks: int = 0  # of the grid that ran
    by_slot: Counter[tuple[str, int]] = field(default_factory=Counter)
    loaded: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    loaded_by: set[tuple[int, int]] = field(default_factory=set)  # (identity of a site, slot) of loads
    block_warps: Counter[int] = field(default_factory=Counter)
    block_lanes: Counter[int] = field(default_factory=Counter)
    expectations: int = 0  # times that a thread told an mbarrier what bulk copies will bring
    expected_bytes: int = 0
    expected_at: Counter[int] = field(default_factory=Counter)  # these by the mbarrier's place in its block
    products: Counter[int] = field(default_factory=Counter)  # of wgmma, by block of the grid
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
        """Counts one global "load", "store" or "atomic" of ``width`` bytes a lane."""
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

    def shared(self, kind: str, g: Group, index: Array, width: int) -> None:
        """Counts one "load" or "store" of shared memory, at pieces ``index`` of ``width`` bytes."""
        self._add(_SHARED[kind], g.warps(), *wavefronts(g.gid, index, width, g.whole()))

    def copy(self, g: Group, index: Array, address: Array, moved: Array, width: int, past_l1: bool) -> None:
        """Counts one cp.async to pieces ``index`` of shared memory; lanes that are not ``moved`` fill with zeros."""
        found, warps = copy_wavefronts.wavefronts(g.gid, index, address, moved, width, past_l1), g.warps()
        self._add(_SHARED_COPY, warps, *found)
        self.here[_PAST_L1] += warps if past_l1 else 0

    def matrices(self, kind: str, warps: int, index: Array) -> None:
        """Counts one ldmatrix or stmatrix of ``warps``, at 16-byte rows ``index``, eight a matrix."""
        self._add(_SHARED[kind], warps, *phases(index.reshape(-1, 8), 8))

    def cluster(self, g: Group) -> None:
        """Counts one load or store by an address of the whole cluster's shared memory, which takes another way."""
        self.here[_CLUSTER] += g.warps()

    def shared_atomic(self, g: Group) -> None:
        self.here[_SHARED_ATOMIC] += g.warps()

    def bulk(self, kind: str, address: int, touched: int, size: int, times: int = 1) -> None:
        """Counts ``times`` bulk copies, which each move ``size`` bytes of global memory in ``touched`` sectors."""
        self.by_slot[kind, address >> _SLOT_BITS] += touched * times
        self._add(_BULK[kind], times, touched * times, size * times)

    def _new(self, g: Group, address: Array) -> bool:
        """Do the group's first lanes load mostly of sectors that its last loads did not touch?"""
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
        """Bytes loaded of stretches that are short enough to stay in L1 beside what streams through it."""
        return sum(asked for low, high, asked in self.loaded.values() if high - low < HOT_STRETCH)

    def warm_bytes(self, scale: float) -> float:
        """Bytes of all loads but the first, by ``scale`` times as many blocks, of tensors that are short enough to stay
        in L2, though not in L1."""
        found = 0.0
        for slot, (low, high, asked) in self.loaded.items():
            alone = slot - 1 not in self.loaded and slot + 1 not in self.loaded
            if alone and HOT_STRETCH <= high - low < _WARM_STRETCH:
                found += max(asked * scale - (high - low), 0.0)
        return found

    def hot_stretch(self) -> int:
        """Length of all such stretches, in bytes."""
        lengths = (high - low for low, high, _ in self.loaded.values())
        return sum(length for length in lengths if length < HOT_STRETCH)

    def hot_sites(self) -> frozenset[int]:
        """Sites that load of such stretches only."""
        hot = {slot for slot, (low, high, _) in self.loaded.items() if high - low < HOT_STRETCH}
        every = {site for site, _ in self.loaded_by}
        cold = {site for site, slot in self.loaded_by if slot not in hot}
        return frozenset(number for number, site in enumerate(self.sites) if id(site) in every - cold)

    def loads(self, sites: Sequence[int]) -> tuple[int, int]:
        """(accesses by the most executed of ``sites``, bytes that all of them asked for)."""
        each = [self.sites[site] for site in sites]
        return max((site[_LOAD] for site in each), default=0), sum(site[_LOAD + 2] for site in each)

    def expect(self, g: Group, slot: Array, size: Array, stride: int) -> None:
        """Counts that threads told the mbarriers at ``slot`` (in 8 bytes; a block has ``stride`` bytes) to expect
        ``size`` bytes each (one for all, or a lane)."""
        sizes = np.broadcast_to(np.asarray(size), (g.n,)).tolist()
        places = np.broadcast_to(slot, (g.n,)) % (stride >> 3)
        self.expectations += g.n
        self.expected_bytes += sum(sizes)
        for place, told in zip(places.tolist(), sizes, strict=True):
            self.expected_at[place] += told

    def stages(self) -> float:
        """Mbarriers that most bytes of bulk copies come to in turns: the stages of their ring. 0.0 without any."""
        most = max(self.expected_at.values(), default=0)
        return float(sum(2 * told > most for told in self.expected_at.values()))

    def busiest_block(self) -> float:
        """Products of the block that has most, over the mean of those that ran: blocks that take tile after tile may
        have one more than others. 1.0 where there are none."""
        return max(self.products.values()) * self.blocks / self.products.total() if self.products else 1.0

    def elapsed(self) -> int:
        """What the clocks have moved on by: a count that only ever grows."""
        return sum(self.block_warps.values())


class Uncounted(Counters):
    """Counts instructions, which clocks go by, and no accesses."""

    def access(self, kind: str, g: Group, address: Array, width: int) -> None: ...

    def shared(self, kind: str, g: Group, index: Array, width: int) -> None: ...

    def copy(self, g: Group, index: Array, address: Array, moved: Array, width: int, past_l1: bool) -> None: ...

    def matrices(self, kind: str, warps: int, index: Array) -> None: ...

    def cluster(self, g: Group) -> None: ...

    def shared_atomic(self, g: Group) -> None: ...

    def bulk(self, kind: str, address: int, touched: int, size: int, times: int = 1) -> None: ...

    def expect(self, g: Group, slot: Array, size: Array, stride: int) -> None: ...


def _by_slot(g: Group, address: Array, touched: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(slot, first and last address, lanes, distinct sectors) of each slot that lanes access: compilers may make one
    load of two tensors by choosing the address."""
    slots = address >> np.uint64(_SLOT_BITS)
    if slots.min() == slots.max():
        yield int(slots[0]), int(address[0]), int(address[-1]), g.n, touched
        return
    for slot in np.unique(slots):
        here = slots == slot
        there = address[here]
        yield int(slot), int(there[0]), int(there[-1]), len(there), sectors_and_lines(g.gid[here], there, False)[0]
