"""Which loads L1 and L2 serve, and what crosses L2 and DRAM, from the footprint of the resident blocks.

Between two reads of the same data, a block's neighbours touch one footprint. If that fits a cache, every re-read hits;
if it is much larger, none does. The thresholds were fitted to an H200's hit counters on rows of softmax and RMSNorm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.counters import SECTOR_BYTES
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel.occupancy import Occupancy

_L1_BESIDE_SMEM = 28 << 10  # bytes of unified L1 and shared memory that always belong to L1
_L1_HITS = (0.5, 1.5)  # footprint over L1's size: up to the first all re-reads hit, from the second on none
_L2_HITS = (0.42, 1.1)  # the same for the footprint of all multiprocessors over L2's size
# Fraction of L2 with the last data that crossed DRAM: stores in it are written back after the launch. 17 kernels that
# store 33 to 134 MB left 0.55 to 0.87 of L2 times the stores' share (benchmarks/results/counters_on_gpu.json).
_L2_LAST = 0.7
# In clusters: L1 hits lost to invalidation, divided by those left, for each other block on the multiprocessor.
_L1_INVALIDATED = 0.4
# Bytes per thread of spill instructions outside the main loop: ptxas first spills rarely used values. The rest is in
# the loop: n2 of benchmarks/foreign_kernels with 1,752 and 10,864 bytes and 64 iterations takes 220 and 630 µs longer
# than without spills, at L2's rate.
_SPILLED_ONCE = 128.0
# Stores of parts of a sector by several instructions (benchmarks/results/l1_and_l2_on_gpu.json). Each pair is a range
# of a ratio: L1 merges all such stores below it, none above it.
_L1_JOINS = (0.5, 1.2)  # ratio of bytes of loads in flight to L1's size
_JOINED_STORES = (1.0, 2.0)  # ratio of bytes stored to bytes loaded
_JOINED_LINES = (8.0, 16.0)  # number of lines that an instruction touches
_PART_SECTORS = 1.4  # sectors that L2 counts for each sector of unmerged stores
_JOINED = 0.55  # fraction of the extra sectors that L2 still counts for merged stores
_PART_DRAM = 0.55  # cost of a byte of unmerged L2 writes relative to a DRAM byte


@dataclass(frozen=True)
class Traffic:
    """Bytes that a launch moves, by level."""

    dram_bytes: float
    """Bytes to and from DRAM."""
    l2_bytes: float
    """Bytes to and from L2, without ``bulk_bytes``."""
    bulk_bytes: float
    """Bytes to and from L2 by bulk copies and cp.async."""
    spilled_bytes: float
    """Part of ``l2_bytes`` caused by spilled registers."""
    left_bytes: float
    """Part of ``dram_bytes`` that L2 has not written back when the launch ends."""
    far: float
    """Fraction of loaded bytes that DRAM serves."""
    near: float
    """Fraction of loaded bytes that L2 serves; L1 serves the rest."""


def traffic(
    counters: Mapping[str, float], launch: Launch, kernel: KernelInfo | None, shape: Occupancy, gpu: GpuSpec
) -> Traffic:
    """Traffic of a launch. Assumes that ``dram_load_bytes`` are the first reads of all blocks, in equal parts."""
    blocks = math.prod(launch.grid)
    resident = shape.resident(blocks)
    asked, once = counters["global_load_bytes"], counters["dram_load_bytes"]
    copied = asked * copied_share(counters)
    cached = asked - copied  # cp.async of 16 bytes bypasses L1
    again = max(cached - counters.get("hot_load_bytes", 0.0) - once * share(cached, asked), 0.0)
    footprint = resident * once / blocks
    l1 = gpu.smem_per_sm + _L1_BESIDE_SMEM - resident * launch.dynamic_smem_bytes
    hits = _kept(footprint / l1, _L1_HITS)
    if math.prod(launch.cluster) > 1:  # waiting for another block of the cluster invalidates the multiprocessor's L1
        hits /= 1 + _L1_INVALIDATED * (resident - 1)
    l2_reads = again * (1 - hits)
    cold = 1 - min(share(counters.get("warm_load_bytes", 0.0), again), 1.0)
    dram_reads = cold * l2_reads * (1 - _kept(footprint * min(blocks, gpu.sm_count) / gpu.l2_bytes, _L2_HITS))

    in_parts, as_dram = _parts_of_sectors(counters, launch, resident, l1)
    threads = blocks * math.prod(launch.block)
    spilled = threads * _spilled_bytes(kernel, counters.get("turns", 1.0)) if kernel else 0.0
    frames = threads * kernel.spill_store_bytes if kernel else 0
    crossed = once + dram_reads + counters["dram_store_bytes"] + as_dram + frames
    stored = counters["global_store_bytes"] + in_parts
    atomics = 2 * SECTOR_BYTES * counters.get("global_atomic_sectors", 0.0)
    bulk = SECTOR_BYTES * (counters.get("bulk_load_sectors", 0.0) + counters.get("bulk_store_sectors", 0.0))
    return Traffic(
        dram_bytes=crossed,
        l2_bytes=once * share(cached, asked) + l2_reads + stored + atomics + spilled,
        bulk_bytes=bulk + copied,
        spilled_bytes=spilled,
        left_bytes=counters["dram_store_bytes"] * min(_L2_LAST * gpu.l2_bytes / max(crossed, 1.0), 1.0),
        far=min(share(once + dram_reads, asked), 1.0),
        near=min(share(l2_reads - dram_reads + copied, asked), max(1.0 - share(once + dram_reads, asked), 0.0)),
    )


def _spilled_bytes(kernel: KernelInfo, turns: float) -> float:
    """Bytes of spilled registers that a thread stores and loads."""
    spilled = kernel.spill_store_bytes + kernel.spill_load_bytes
    return min(spilled, _SPILLED_ONCE) + max(spilled - _SPILLED_ONCE, 0.0) * turns


def _parts_of_sectors(counters: Mapping[str, float], launch: Launch, resident: int, l1: float) -> tuple[float, float]:
    """(extra bytes that L2 writes, DRAM bytes that take as long) if several instructions write one sector. L1 merges
    most such writes, unless loads in flight leave no room, more is stored than loaded, or an instruction touches too
    many lines."""
    asked, stored = SECTOR_BYTES * counters["global_store_sectors"], counters["global_store_bytes"]
    if asked <= stored:
        return 0.0, 0.0
    in_flight = resident * math.prod(launch.block) * counters["load_bytes_in_flight"]
    lines = share(counters.get("global_store_lines", 0.0), counters.get("global_store_requests", 0.0))
    over_loaded = share(stored, counters["global_load_bytes"])
    joined = _kept(in_flight / l1, _L1_JOINS) * _kept(over_loaded, _JOINED_STORES) * _kept(lines, _JOINED_LINES)
    alone = (_PART_SECTORS * asked - stored) * (1 - joined)
    return alone + _JOINED * (asked - stored) * joined, _PART_DRAM * alone


def _kept(ratio: float, edges: tuple[float, float]) -> float:
    """1 up to the first of ``edges``, 0 from the second on, linear between."""
    below, above = edges
    return min(max((above - ratio) / (above - below), 0.0), 1.0)


def copied_share(counters: Mapping[str, float]) -> float:
    """Fraction of the loads that are cp.async."""
    return share(counters.get("shared_copy_requests", 0.0), counters["global_load_requests"])


def share(part: float, whole: float) -> float:
    """``part`` over ``whole``; 0 if ``whole`` is 0."""
    return part / whole if whole else 0.0
