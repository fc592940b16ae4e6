"""Names and units of the counters of a :class:`~cutegen_lab.core.trial.Profile`, whatever counted them.

The emulator counts PTX; a hardware profiler counts SASS, so instructions may differ where sectors and bytes do not. A
counter that a source cannot know is absent. Sums are over the whole grids of all launches.
"""

from __future__ import annotations

from collections.abc import Mapping

STALLS: Mapping[str, str] = {  # Nsight Compute's stall reason -> what the warp waits for
    "barrier": "other warps at a barrier of the block",
    "branch_resolve": "the target of a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "its stores, before it ends",
    "gmma": "a warpgroup's matrix product",
    "imc_miss": "a constant",
    "lg_throttle": "room in the queue of global and local memory",
    "long_scoreboard": "data from global memory or L2",
    "math_pipe_throttle": "an arithmetic or tensor unit that is busy",
    "membar": "a memory fence",
    "mio_throttle": "room in the queue of shared memory and special functions",
    "misc": "something else",
    "no_instruction": "its next instruction",
    "short_scoreboard": "data from shared memory or special functions",
    "sleeping": "the end of its sleep",
    "tex_throttle": "room in the queue of textures",
    "wait": "a fixed latency of its last instruction",
}
COUNTERS: Mapping[str, tuple[str, str]] = {  # name -> (unit, meaning)
    "warp_instructions": ("warp instructions", "instructions that warps issue, predicated-off ones included"),
    "lane_instructions": ("lane instructions", "the same, counted per active lane: 32 per warp without divergence"),
    "tensor_instructions": ("warp instructions", "mma and wgmma; one wgmma is four, one for each warp"),
    "tensor_ops": ("operations", "multiplications and additions of tensor cores"),
    "mma_sync_ops": ("operations", "tensor_ops by mma.sync, which cannot reach a Hopper tensor core's full rate"),
    "global_load_requests": ("warp accesses", "ld and cp.async of global memory"),
    "global_load_sectors": ("sectors of 32 bytes", "different sectors of each request, summed"),
    "global_load_bytes": ("bytes", "bytes that the lanes requested"),
    "global_load_lines": ("lines of 128 bytes", "different cache lines of each ld, cp.async and atomic, summed"),
    "global_load_new_lines": ("lines of 128 bytes", "those of loads whose sectors the warp's last loads did not touch"),
    "global_load_wavefronts": ("wavefronts", "passes of ld and cp.async through L1, one per cycle"),
    "global_store_requests": ("warp accesses", "st to global memory"),
    "global_store_sectors": ("sectors of 32 bytes", "different sectors of each request, summed"),
    "global_store_bytes": ("bytes", "what the lanes wrote"),
    "global_store_lines": ("lines of 128 bytes", "different cache lines of each st and atomic, summed"),
    "global_atomic_requests": ("warp accesses", "atom and red on global memory"),
    "global_atomic_sectors": ("sectors of 32 bytes", "different sectors of each request, summed"),
    "global_atomic_bytes": ("bytes", "what the lanes changed"),
    "bulk_loads": ("copies", "cp.async.bulk and cp.async.bulk.tensor from global memory (TMA)"),
    "bulk_load_sectors": ("sectors of 32 bytes", "different sectors of each row of each copy, summed"),
    "bulk_load_bytes": ("bytes", "what these copies read inside the tensor; a multicast reads once"),
    "bulk_stores": ("copies", "the same to global memory, reductions included"),
    "bulk_store_sectors": ("sectors of 32 bytes", "different sectors of each row of each copy, summed"),
    "bulk_store_bytes": ("bytes", "what these copies wrote inside the tensor"),
    "shared_requests": (
        "warp accesses",
        "loads, stores and cp.async of shared memory; ldmatrix and stmatrix among them",
    ),
    "shared_wavefronts": ("wavefronts", "passes of these through shared memory, one per cycle"),
    "shared_conflicts": ("wavefronts", "passes beyond what they take without bank conflicts"),
    "shared_load_requests": ("warp accesses", "ld and ldmatrix of shared memory"),
    "shared_load_wavefronts": ("wavefronts", ""),
    "shared_load_conflicts": ("wavefronts", ""),
    "shared_store_requests": ("warp accesses", "st and stmatrix to shared memory"),
    "shared_store_wavefronts": ("wavefronts", ""),
    "shared_store_conflicts": ("wavefronts", ""),
    "shared_copy_requests": ("warp accesses", "cp.async into shared memory"),
    "shared_copy_wavefronts": ("wavefronts", ""),
    "shared_copy_conflicts": ("wavefronts", ""),
    "shared_copies_past_l1": (
        "warp accesses",
        "cp.async that bypass L1 (.cg): their data do not pass the load/store unit",
    ),
    "shared_atomic_requests": ("warp accesses", "atom and red on shared memory"),
    "cluster_requests": ("warp accesses", "ld and st of shared::cluster: a block's own or another's shared memory"),
    "barrier_waits": ("warp waits", "bar.sync and similar, one for each warp that arrives"),
    "mbarrier_waits": ("warp waits", "mbarrier try_wait and test_wait, one for each poll by a warp"),
    "cluster_waits": ("warp waits", "barrier.cluster.wait"),
    "dram_load_bytes": ("bytes", "read from device memory; the emulator assumes that re-reads hit L2"),
    "dram_store_bytes": ("bytes", "written to device memory; the emulator assumes that rewrites stay in L2"),
    "compulsory_bytes": ("bytes", "each input read once, each output written once"),
    "moved_bytes": ("bytes", "32 × the sectors that crossed between multiprocessors and L2"),
    "resident_warps_per_sm": ("warps", "warps that share a multiprocessor, of the longest launch"),
    "bulk_phases": ("times", "that a thread set an mbarrier's expected bytes (expect_tx)"),
    "bulk_expected_bytes": ("bytes", "sum of these expected bytes; a multicast counts in each receiving block"),
    "bulk_stages": ("stages", "mbarriers that receive these bytes in turn: the ring's stages in flight"),
    "chain_cycles": ("warp cycles", "the longest dependency chains, one for each basic block"),
    "busiest_block": ("", "wgmma of the busiest block, divided by the mean: some persistent blocks get one more tile"),
    "turns": ("times", "that a warp executes an instruction, mean over all executed instructions"),
    "blocks": ("blocks", "of all launches"),
    "blocks_counted": ("blocks", "blocks that ran; counts are scaled up to all blocks"),
    "load_bytes_in_flight": ("bytes per thread", "loads outstanding at a time, mean over batches of loads"),
    "hot_load_bytes": ("bytes", "loads of ranges small enough to stay in L1"),
    "warm_load_bytes": ("bytes", "loads, except the first, of tensors small enough to stay in L2"),
    "waves": ("waves", "blocks of the longest launch, divided by those resident at a time"),
    **{f"stall_cycles_{why}": ("warp cycles", f"could not issue: waits for {what}") for why, what in STALLS.items()},
}
"""Further counters: ``warp_instructions_<class>`` (an approximate function counts as all instructions into which ptxas
translates it), ``tensor_ops_<operand type>``, ``loaded_bytes:<input>`` and ``predicted_<part>_us``."""

_MOVED = (
    # global_atomic_sectors is listed twice: an atomic moves its sector in both directions.
    "global_load_sectors", "global_store_sectors", "global_atomic_sectors", "global_atomic_sectors",
    "bulk_load_sectors", "bulk_store_sectors",
)  # fmt: skip
SECTOR_BYTES = 32  # the unit in which L2 and DRAM move global data


def moved_bytes(counters: Mapping[str, float]) -> float:
    """Bytes moved between multiprocessors and L2."""
    return SECTOR_BYTES * sum(counters.get(name, 0.0) for name in _MOVED)


def divergence(counters: Mapping[str, float]) -> float:
    """Mean fraction of active lanes of a warp, 0 to 1; 1.0 if nothing ran."""
    warps = counters.get("warp_instructions", 0.0)
    return counters.get("lane_instructions", 0.0) / (32 * warps) if warps else 1.0
