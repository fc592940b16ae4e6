"""Findings: sentences that tell the analyst what to change, from the counters."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.counters import SECTOR_BYTES, divergence, moved_bytes
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel.cost_terms import by_class
from cutegen_lab.perfmodel.occupancy import Occupancy
from cutegen_lab.perfmodel.traffic import Traffic

ByLine = Mapping[int, Mapping[str, float]]
_WASTED = 1.1  # ratio of moved to used bytes from which a finding is made
_NARROW = 12  # accesses of at most this many bytes per thread are narrow
_MATTERS = 0.1  # minimum fraction of all moved bytes for a finding
_BUSY_LATENCY_US = 0.75  # latency of a DRAM access while memory is busy, which loads in flight must cover
_MIX = 3  # maximum number of classes of instructions that a finding names


def findings(
    counters: Mapping[str, float], launch: Launch, kernel: KernelInfo | None, shape: Occupancy, gpu: GpuSpec,
    moved: Traffic, limiter: str, lines: ByLine,
) -> tuple[str, ...]:  # fmt: skip
    """Findings, most important first; only those worth a change given that ``limiter`` sets the time. ``lines``:
    counters of each line of the candidate's text, 0 for code of no line."""
    found = [
        _in_flight(counters, launch, shape, gpu, limiter),
        _dependent(counters, launch, shape, gpu, limiter),
        _waiting(counters, launch, gpu, limiter),
        _mix(counters, limiter),
        _accesses(lines, "load", limiter),
        _accesses(lines, "store", limiter),
        _rereads(counters, moved),
        _lines(counters, limiter),
        _grid(launch, shape, gpu),
        _spills(kernel),
        _occupancy(shape, gpu, limiter),
        _lanes(counters),
        _special(limiter),
    ]
    return tuple(text for text in found if text)


def _in_flight(counters: Mapping[str, float], launch: Launch, shape: Occupancy, gpu: GpuSpec, limiter: str) -> str:
    """Little's law: bytes in flight = bandwidth × latency."""
    if not limiter.startswith(("memory", "L2", "launch", "tail")):
        return ""
    loads, stores = counters["dram_load_bytes"], counters["dram_store_bytes"]
    if loads <= 0 or counters.get("bulk_load_bytes", 0.0) > counters["global_load_bytes"]:
        return ""
    share = loads / (loads + stores)
    needed = gpu.copy_bytes_per_s * share * _BUSY_LATENCY_US * 1e-6 / gpu.sm_count
    threads = min(shape.blocks, max(math.prod(launch.grid) / gpu.sm_count, 1)) * math.prod(launch.block)
    have = counters["load_bytes_in_flight"]
    enough = 2 ** math.ceil(math.log2(max(needed / threads, 1)))
    if have * threads >= needed:
        return ""
    return (
        f"each thread has {have:.0f} B of loads in flight; {enough} B would cover the memory latency at "
        f"{threads:.0f} threads per multiprocessor"
    )


def _dependent(counters: Mapping[str, float], launch: Launch, shape: Occupancy, gpu: GpuSpec, limiter: str) -> str:
    dependent = "dependent instructions" in limiter
    if not dependent and "few warps" not in limiter:
        return ""
    warps = math.prod(launch.grid) * -(-math.prod(launch.block) // 32)
    chain, issued = counters.get("chain_cycles", 0.0) / warps, counters["warp_instructions"] / warps
    more = "more independent work per thread (several accumulators, unrolled loops), or more warps"
    return (
        f"each warp issues {issued:,.0f} instructions and waits {chain:,.0f} cycles for their results, with "
        f"{shape.warps} of {gpu.max_threads_per_sm // 32} warps resident: {more if dependent else 'more warps'} fill "
        "the gaps"
    )


def _waiting(counters: Mapping[str, float], launch: Launch, gpu: GpuSpec, limiter: str) -> str:
    warps = math.prod(launch.grid) * -(-math.prod(launch.block) // 32)
    if limiter.startswith("barriers"):
        waits = (counters.get("barrier_waits", 0.0) + counters.get("mbarrier_waits", 0.0)) / warps
        return f"each warp waits at {waits:,.0f} barriers: do more between two of them, or exchange within a warp"
    if limiter.startswith("cluster waits"):
        waits, exchanges = counters.get("cluster_waits", 0.0) / warps, counters.get("bulk_phases", 0.0)
        return (
            f"each warp waits {waits:,.0f} times for its cluster to arrive, and each block for "
            f"{exchanges / math.prod(launch.grid):,.0f} exchanges with it: fewer of them, or no cluster"
        )
    if limiter.startswith("bulk copies"):
        stage = counters.get("bulk_expected_bytes", 0.0) / max(counters.get("bulk_phases", 0.0), 1.0)
        used, room = launch.dynamic_smem_bytes, gpu.max_smem_per_block
        more = "more stages cover their latency"
        if used + stage > room:
            more = "there is no room for more; tiles that use their bytes more often, or multicast, need fewer of them"
        return f"stages of {stage / 1024:.0f} KiB in {used >> 10} of {room >> 10} KiB of shared memory: {more}"
    return ""


def _mix(counters: Mapping[str, float], limiter: str) -> str:
    """Composition of the instructions, if they set the time."""
    if not any(word in limiter for word in ("units", "issue", "conversions", "dependent")):
        return ""
    classes = by_class(counters)
    total = sum(classes.values())
    most = sorted(classes, key=lambda name: -classes[name])[:_MIX]
    named = ", ".join(f"{classes[name] / total:.0%} {name}" for name in most if classes[name] >= 0.01 * total)
    return f"warp instructions: {named}" if named else ""


def _accesses(lines: ByLine, kind: str, limiter: str) -> str:
    """Finding about the worst line that moves a significant amount: first coalescing, then vector width."""
    if limiter.startswith(("tensor", "barriers", "cluster", "bulk")):
        return ""
    total = sum(moved_bytes(counters) for counters in lines.values())
    moved = {n: SECTOR_BYTES * counters.get(f"global_{kind}_sectors", 0.0) for n, counters in lines.items()}
    matter = [n for n, size in moved.items() if size > 0 and size >= _MATTERS * total]
    waste = {n: moved[n] / max(lines[n][f"global_{kind}_bytes"], 1.0) for n in matter}
    worst = max(waste, key=lambda n: (waste[n] - 1) * moved[n], default=0)
    if waste.get(worst, 0.0) > _WASTED:
        return (
            f"{_accesses_of(worst, kind)} move {waste[worst]:.1f} times the bytes they use: neighbouring threads "
            "should touch neighbouring addresses"
        )
    widths = {n: _width(lines[n], kind) for n in matter}
    narrow = min((n for n in matter if widths[n] <= _NARROW), key=lambda n: -moved[n], default=None)
    if narrow is None:
        return ""
    return (
        f"{_accesses_of(narrow, kind)} are {widths[narrow]:.0f} B per thread; 16 B (128-bit) vectors need fewer "
        "instructions"
    )


def _accesses_of(line: int, kind: str) -> str:
    """The accesses of a finding. The compiler moves a load to the first use of its value, and gives it that line."""
    if not line:
        return f"global {kind}s"
    return (
        f"line {line}: global loads issued or first used there"
        if kind == "load"
        else f"line {line}: its global {kind}s"
    )


def _width(counters: Mapping[str, float], kind: str) -> float:
    """Bytes per thread of an access, counting active lanes only."""
    lanes = 32 * counters.get(f"global_{kind}_requests", 0.0) * divergence(counters)
    return counters[f"global_{kind}_bytes"] / lanes if lanes else 16.0


def _rereads(counters: Mapping[str, float], moved: Traffic) -> str:
    once, asked = counters["dram_load_bytes"], 32 * counters["global_load_sectors"]
    if once <= 0 or asked <= 1.25 * once:
        return ""
    text = f"inputs are read {asked / once:.1f} times over"
    if moved.far * counters["global_load_bytes"] < 1.1 * once:
        return f"{text} (from L1 and L2 after the first)"
    return f"{text}, partly from device memory: what the resident blocks read is more than L2 keeps"


def _lines(counters: Mapping[str, float], limiter: str) -> str:
    requests = counters["global_load_requests"] + counters["global_store_requests"]
    lines = counters.get("global_load_lines", 0.0) + counters.get("global_store_lines", 0.0)
    if not limiter.startswith("L1") or not requests:
        return ""
    return (
        f"a warp's access touches {lines / requests:.0f} cache lines of 128 B on average, and L1 looks them up one by "
        "one: give neighbouring threads neighbouring 16 B"
    )


def _grid(launch: Launch, shape: Occupancy, gpu: GpuSpec) -> str:
    blocks = math.prod(launch.grid)
    if blocks < gpu.sm_count:
        return f"{blocks} blocks leave {gpu.sm_count - blocks} of {gpu.sm_count} multiprocessors idle"
    whole = math.ceil(shape.waves)
    if 1 < shape.waves < 4 and whole - shape.waves > 0.3:
        return f"{shape.waves:.1f} waves of blocks: the last one leaves {(whole - shape.waves):.0%} of the GPU idle"
    return ""


def _spills(kernel: KernelInfo | None) -> str:
    spilled = kernel.spill_store_bytes + kernel.spill_load_bytes if kernel else 0
    return f"{spilled} B of registers per thread are spilled to local memory" if spilled else ""


def _occupancy(shape: Occupancy, gpu: GpuSpec, limiter: str) -> str:
    most = gpu.max_threads_per_sm // 32
    helps = any(word in limiter for word in ("latency", "dependent", "few warps"))
    if shape.waves <= 1 or shape.warps * 2 >= most or not helps:
        return ""
    return f"{shape.warps} of {most} warps are resident per multiprocessor, limited by {shape.limiter}"


def _lanes(counters: Mapping[str, float]) -> str:
    active = counters["lane_instructions"] / max(counters["warp_instructions"] * 32, 1)
    return f"{active:.0%} of lanes are active on average: warps diverge or are partly empty" if active < 0.85 else ""


def _special(limiter: str) -> str:
    if "special-function" not in limiter:
        return ""
    return (
        "exponentials, roots, divisions and conversions to and from integers set the time; fold scale factors so that "
        "fewer are needed"
    )
