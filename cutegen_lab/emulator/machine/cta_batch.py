"""Blocks that run together in lockstep: their memory, barriers and special registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutegen_lab.core.artifact import Launch
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.counters.launch_counters import Counters
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa.warp_barrier import WarpBarrier, reached_by
from cutegen_lab.emulator.machine.barriers import ClusterBarrier, NamedBarriers
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.machine.mbarriers import MBarriers
from cutegen_lab.emulator.machine.register_pool import RegisterPool
from cutegen_lab.emulator.memory.block_memory import BlockMemory
from cutegen_lab.emulator.memory.global_memory import GlobalMemory
from cutegen_lab.emulator.memory.origins import Origins
from cutegen_lab.emulator.mma.accumulators import WarpgroupLanes
from cutegen_lab.emulator.mma.wgmma import WarpgroupProducts
from cutegen_lab.emulator.program import SHARED_BASE, Program
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.async_proxy import AsyncProxyRaces
from cutegen_lab.emulator.races.branch_outcomes import BranchOutcomes
from cutegen_lab.emulator.races.causality import Causality
from cutegen_lab.emulator.races.shared_memory import SharedRaces, generated_line
from cutegen_lab.emulator.races.vector_clock import VectorClocks
from cutegen_lab.emulator.roles import Group
from cutegen_lab.emulator.tma.bulk import BulkCopies
from cutegen_lab.emulator.translate.cfg import Rows

MOST_WARPS = 1024  # maximum number of warps of a grid of which the order of all clusters is tracked
SOME_WARPS = 128  # number of warps tracked in a larger grid: of the first cluster, the last and some random ones


class CtaBatch:
    """State of the blocks ``numbers`` (linear, whole clusters, counted cluster by cluster) of one launch.

    ``registers``: per thread at launch, None if unknown. ``warps``: seed of the interleaving, 0 for lockstep."""

    def __init__(
        self,
        program: Program,
        launch: Launch,
        memory: GlobalMemory,
        numbers: Sequence[int] | Array,
        counters: Counters,
        shadow: bool,
        clock: int = 0,
        races: bool = False,
        registers: int | None = None,
        warps: int = 0,
    ) -> None:
        self.program, self.launch, self.memory, self.counters = program, launch, memory, counters
        self.clock = clock  # value of the clock registers when the launch began
        self.numbers = np.asarray(numbers, np.int64)
        self.count = len(self.numbers)
        self.threads = int(np.prod(launch.block))
        self.padded_threads = -(-self.threads // 32) * 32
        self.cluster_size = int(np.prod(launch.cluster))
        self.xyz = block_coordinates(launch, self.numbers)
        smem = program.static_smem + launch.dynamic_smem_bytes
        self.shared = BlockMemory("shared", self.count, SHARED_BASE, smem, self.cluster_size, shadow)
        self.shared.reached = self.reach
        lanes = self.count * self.padded_threads
        self.local = BlockMemory("local", lanes if program.local_bytes else 0, 0, program.local_bytes, 1, shadow)
        self.watches, self.warps_seed = shadow, warps
        self.origins: Origins | None = None
        if program.unwritten_sites is not None:
            self.origins = Origins([site.instruction for site in program.unwritten_sites])
            self.shared.follow(self.origins)
            self.local.follow(self.origins)
        self.registers = None if registers is None else RegisterPool(self.count, self.padded_threads // 32, registers)
        self.barriers = NamedBarriers(self.count, self.threads)
        self.cluster_barrier = ClusterBarrier(self.count, self.cluster_size, self.threads, self.padded_threads)
        self.mbarriers = MBarriers(len(self.shared.data) // 8 if program.uses_mbarrier else 0, self.shared)
        self._reduced: dict[tuple[int, tuple[int, ...]], Rows] = {}
        self.products = WarpgroupProducts(self)
        self.bulk = BulkCopies(self, late=races)
        self.async_races: AsyncProxyRaces | None = None
        self.causality: Causality | None = None
        self.branches: BranchOutcomes | None = None  # None unless branch outcomes are tracked
        self.ended = False  # whether all threads of some block have exited
        self.exited = np.zeros(lanes, np.bool_)
        gid = np.arange(lanes)
        self.exited[gid % self.padded_threads >= self.threads] = True  # lanes that pad the last warp never run
        self.warp_barrier = WarpBarrier(self)
        self.clocks = self._look_for_races() if races else None

    def _look_for_races(self) -> VectorClocks:
        warps = self.padded_threads // 32
        clocks = VectorClocks(self.count, self.cluster_size, warps, self.exited, self._followed(warps))
        if self.program.fences:
            self.causality = Causality(clocks, self.numbers, self.cluster_size)
        self.shared.races = races = SharedRaces(self, clocks)
        self.async_races = AsyncProxyRaces(self, clocks, races)
        self.barriers.follow(clocks)
        self.cluster_barrier.follow(clocks)
        self.mbarriers.follow(clocks, self.async_races)
        self.mbarriers.copies = races.copies
        return clocks

    def _followed(self, warps: int) -> Array | None:
        """The clusters whose order is tracked, the same for all batches of a launch; None for no order between
        clusters."""
        clusters, size = int(np.prod(self.launch.grid)) // self.cluster_size, warps * self.cluster_size
        if not self.program.blocks_may_wait:
            return None
        if clusters * size <= MOST_WARPS:
            return np.arange(clusters)
        drawn = np.random.default_rng(self.clock).integers(0, clusters, max(SOME_WARPS // size - 2, 0))
        return np.unique(np.r_[0, drawn, clusters - 1])

    def instruction(self) -> ptx.Instruction | None:
        """The PTX instruction that is being executed."""
        return self.program.source_map.get(generated_line(self.program))

    def all_lanes(self) -> Array:
        return np.flatnonzero(~self.exited)

    def exit(self, g: LaneGroup) -> None:
        self.exited[g.gid] = True
        self.warp_barrier.exit(g)
        self.ended = self.ended or bool(self.have_ended(np.arange(self.count)).any())
        self.barriers.exit(g)
        if self.cluster_size > 1:
            self.cluster_barrier.exit(g)
        if self.async_races is not None:
            self.async_races.exit(g)

    def have_ended(self, blocks: Array) -> Array:
        """Which of ``blocks`` have no running thread."""
        return np.asarray(self.exited.reshape(self.count, -1)[blocks].all(axis=1))

    def rows_to_copy(self, g: WarpgroupLanes, pc: int) -> Rows:
        """Live registers at ``pc``, without accumulators that are kept as a matrix (:mod:`wgmma`)."""
        rows = self.program.live_in[pc]
        kept = tuple(n for n, _ in self.program.live_sums[pc] if self.products.holds(n, g))
        if not kept:
            return rows
        reduced = self._reduced.get((pc, kept))
        if reduced is None:
            without = frozenset().union(*(of for n, of in self.program.live_sums[pc] if n in kept))
            words = [row for row in rows[2] if row not in without]
            reduced = self._reduced[pc, kept] = (rows[0], rows[1], words, rows[3])
        return reduced

    def reach(self, g: Group, blocks: Array) -> None:
        """Checks that threads of ``g`` may access the shared memory of ``blocks`` of their clusters."""
        if self.async_races is None and not self.ended:
            return
        for warp, block in np.unique(np.stack([g.gid >> 5, blocks]), axis=1).T.tolist():
            self.require_running(warp * 32, block)

    def require_running(self, gid: int, block: int) -> None:
        """Traps if ``block`` has ended and is not the block of thread ``gid``, which accesses its shared memory."""
        if (self.async_races is None and not self.ended) or gid // self.padded_threads == block:
            return
        if self.have_ended(np.array([block])).all():
            rank = int(self.numbers[block]) % self.cluster_size
            message = f"accesses the shared memory of block rank {rank} of its cluster, which has ended"
            raise Trap(Verdict.LAUNCH_FAILURE, message, gid)
        if self.async_races is not None:
            self.async_races.reaches(gid, block)

    def meet(self, g: Group) -> None:
        """Orders the lanes of each warp of ``g`` with each other, in race-detection mode."""
        if self.shared.races is not None:
            self.shared.races.warp_sync(g)

    def meets_for(self, pc: int) -> str:
        """The instruction at which lanes of basic block ``pc`` wait for each other, in words."""
        return self.program.blocks[pc].emits[0].meets

    def attendance(self, g: Group) -> tuple[Array, Array, Array]:
        """(warps with lanes in ``g``, number of those lanes, number of running lanes), by warp."""
        warps, here = np.unique(g.gid >> 5, return_counts=True)
        return warps, here, 32 - self.exited.reshape(-1, 32)[warps].sum(axis=1)

    def require_whole_warps(self, g: Group, what: str) -> None:
        """Traps if a warp's running threads are not all in ``g``, at the warp-wide instruction ``what``."""
        self.meet(g)
        if g.whole():
            return
        warps, here, running = self.attendance(g)
        short = np.flatnonzero(here < running)
        if len(short):
            at = int(short[0])
            gid = int(g.gid[np.searchsorted(g.gid, warps[at] * 32)])
            message = reached_by(what, int(here[at]), int(running[at]))
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, gid)

    def coordinates(self, number: int) -> tuple[int, int, int]:
        """(x, y, z) of any block of the launch."""
        x, y, z = (int(axis[0]) for axis in block_coordinates(self.launch, np.array([number])))
        return x, y, z

    def place(self, gid: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """(block, thread) coordinates of a lane."""
        block, tid = divmod(gid, self.padded_threads)
        bx, by, _ = self.launch.block
        x, y, z = (int(axis[block]) for axis in self.xyz)
        return (x, y, z), (tid % bx, tid // bx % by, tid // (bx * by))


def block_coordinates(launch: Launch, numbers: Array) -> tuple[Array, Array, Array]:
    """(x, y, z) of blocks numbered cluster by cluster."""
    (gx, gy, _), (cx, cy, cz) = launch.grid, launch.cluster
    cluster, rank = np.divmod(numbers, cx * cy * cz)
    wide, high = gx // cx, gy // cy
    return (
        cluster % wide * cx + rank % cx,
        cluster // wide % high * cy + rank // cx % cy,
        cluster // (wide * high) * cz + rank // (cx * cy),
    )


@runtime
def special(g: LaneGroup, name: str, kind: Any) -> Any:
    """A special register (PTX ISA 10) as an array over lanes or a scalar of NumPy type ``kind``."""
    key = (name, kind)
    value = g.cache.get(key)
    if value is None:
        found = _special(g, name.lstrip("%"))
        value = (found if isinstance(found, np.ndarray) else np.uint64(found)).astype(kind)
        if "clock" not in name and "timer" not in name:
            g.cache[key] = value
    return value


def _special(g: LaneGroup, name: str) -> Any:
    ctas = g.ctas
    name, _, axis = name.partition(".")
    i = "xyz".index(axis) if axis else 0
    grid, block, cluster = ctas.launch.grid, ctas.launch.block, ctas.launch.cluster
    if name == "tid":
        tid = g.gid % ctas.padded_threads
        return (tid % block[0], tid // block[0] % block[1], tid // (block[0] * block[1]))[i]
    if name == "ctaid":
        return ctas.xyz[i][g.block]
    if name == "cluster_ctarank":
        return ctas.numbers[g.block] % ctas.cluster_size
    if name == "cluster_ctaid":
        return ctas.xyz[i][g.block] % cluster[i]
    if name == "clusterid":
        return ctas.xyz[i][g.block] // cluster[i]
    if name.startswith("lanemask_"):
        bit = np.left_shift(np.uint64(1), g.lane.astype(np.uint64))
        return {"eq": bit, "lt": bit - 1, "le": bit * 2 - 1, "gt": ~(bit * 2 - 1) & 0xFFFFFFFF,
                "ge": ~(bit - 1) & 0xFFFFFFFF}[name[9:]]  # fmt: skip
    if name == "laneid":
        return g.lane
    return _uniform(g, name, i, grid, block, cluster)


def _uniform(
    g: LaneGroup, name: str, i: int, grid: tuple[int, ...], block: tuple[int, ...], cluster: tuple[int, ...]
) -> int:
    ctas = g.ctas
    values = {
        "ntid": block[i], "nctaid": grid[i], "cluster_nctaid": cluster[i], "nclusterid": grid[i] // cluster[i],
        "cluster_nctarank": ctas.cluster_size, "is_explicit_cluster": int(ctas.cluster_size > 1),
        "dynamic_smem_size": ctas.launch.dynamic_smem_bytes,
    }  # fmt: skip
    if name in ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"):
        return ctas.clock + ctas.counters.elapsed() >> (32 if name.endswith("_hi") else 0)
    if name not in values:
        raise Trap(Verdict.UNSUPPORTED, f"special register %{name} is not known to the emulator", int(g.gid[0]))
    return values[name]
