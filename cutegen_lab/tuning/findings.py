"""What the counts say in sentences an analyst can act on."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.counters import moved_bytes
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.tuning.occupancy import Occupancy
from cutegen_lab.tuning.traffic import Traffic

_MATTERS = 0.1  # of all bytes moved


def findings(
    counters: Mapping[str, float], launch: Launch, kernel: KernelInfo | None, shape: Occupancy, gpu: GpuSpec,
    moved: Traffic, limiter: str, latency_us: float,
) -> tuple[str, ...]:  # fmt: skip
    """Most important first; only what is worth changing."""
    found = [
        _in_flight(counters, launch, shape, gpu, latency_us),
        _coalescing(counters, "load"),
        _coalescing(counters, "store"),
        _rereads(counters, moved),
        _lines(counters, limiter),
        _grid(launch, shape, gpu),
        _spills(kernel),
        _occupancy(shape, gpu, limiter),
        _lanes(counters),
        _special(counters, limiter),
    ]
    return tuple(text for text in found if text)


def _in_flight(counters: Mapping[str, float], launch: Launch, shape: Occupancy, gpu: GpuSpec, latency_us: float) -> str:
    """Little's law: bytes outstanding = bandwidth × latency."""
    loads, stores = counters["dram_load_bytes"], counters["dram_store_bytes"]
    if loads <= 0 or counters.get("bulk_load_bytes", 0.0) > counters["global_load_bytes"]:
        return ""
    share = loads / (loads + stores)
    needed = gpu.copy_bytes_per_s * share * latency_us * 1e-6 / gpu.sm_count
    threads = min(shape.blocks, max(math.prod(launch.grid) / gpu.sm_count, 1)) * math.prod(launch.block)
    have = counters["load_bytes_in_flight"]
    enough = 2 ** math.ceil(math.log2(max(needed / threads, 1)))
    if have * threads >= needed:
        return ""
    return (
        f"each thread has {have:.0f} B of loads in flight; {enough} B would cover the memory latency at "
        f"{threads:.0f} threads a multiprocessor"
    )


def _coalescing(counters: Mapping[str, float], kind: str) -> str:
    useful, moved = counters[f"global_{kind}_bytes"], 32 * counters[f"global_{kind}_sectors"]
    if moved < _MATTERS * moved_bytes(counters):
        return ""
    if moved <= 1.1 * useful:
        return _width(counters, kind)
    return (
        f"global {kind}s move {moved / useful:.1f} times the bytes they use: neighbouring threads should touch "
        "neighbouring addresses"
    )


def _width(counters: Mapping[str, float], kind: str) -> str:
    requests = counters[f"global_{kind}_requests"]
    width = counters[f"global_{kind}_bytes"] / (32 * requests) if requests else 16
    if width > 12:
        return ""
    return f"global {kind}s are {width:.0f} B a thread; 16 B (128-bit) vectors need fewer instructions"


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
    return f"{spilled} B of registers are spilled to local memory a thread" if spilled else ""


def _occupancy(shape: Occupancy, gpu: GpuSpec, limiter: str) -> str:
    most = gpu.max_threads_per_sm // 32
    if shape.waves <= 1 or shape.warps * 2 >= most or "latency" not in limiter:
        return ""
    return f"{shape.warps} of {most} warps are resident a multiprocessor, limited by {shape.limiter}"


def _lanes(counters: Mapping[str, float]) -> str:
    active = counters["lane_instructions"] / max(counters["warp_instructions"] * 32, 1)
    return f"{active:.0%} of lanes are active on average: warps diverge or are partly empty" if active < 0.85 else ""


def _special(counters: Mapping[str, float], limiter: str) -> str:
    if "special-function" not in limiter:
        return ""
    return "exponentials, roots and divisions set the time; fold scale factors so that fewer are needed"
