"""The default config: the candidate with the shortest estimated time."""

from __future__ import annotations

from math import ceil

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.templates.families.gemm.shape import products
from cutegen_lab.templates.families.mma.config import shared_bytes, why_not
from cutegen_lab.templates.frontend.expr import Graph

_TILES = {(16, 64): (1, 2), (32, 64): (1, 2), (64, 64): (2, 2), (64, 128): (2, 2), (128, 64): (2, 2),
          (128, 128): (2, 2), (128, 256): (2, 4), (256, 128): (4, 2)}  # fmt: skip
# Number of warps that keep an SM's tensor cores busy; with half as many, an H200 takes 1.2 times as long.
_WARPS = 8
_LAUNCH_US = 2.2


def default_config(graph: Graph, workload: Workload, gpu: GpuSpec) -> Config:
    """The candidate that :func:`_expected_us` expects to be fastest."""
    candidates = (
        {
            "tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k, "stages": stages, "warps_m": warps_m,
            "warps_n": warps_n, "raster": "m", "group": 8, "split_k": split,
        }
        for (tile_m, tile_n), (warps_m, warps_n) in _TILES.items()
        for tile_k in (32, 64) for stages in (4, 3) for split in (1, 2, 4, 8, 16)
    )  # fmt: skip
    fit = (c for c in candidates if not why_not(graph, c, gpu.max_smem_per_block, gpu.sm_count))
    return min(fit, key=lambda config: _expected_us(graph, workload, gpu, config))


def _expected_us(graph: Graph, workload: Workload, gpu: GpuSpec, config: Config) -> float:
    """Estimated time in microseconds: mainly the longer of two times: waves of tiles (steps along k, prologue,
    epilogue), and memory traffic."""
    found = products(graph)
    assert found is not None
    m, n, k, batches = found.sizes(graph, workload)
    names = ("tile_m", "tile_n", "tile_k", "warps_m", "warps_n", "split_k")
    tile_m, tile_n, tile_k, warps_m, warps_n, split = (int(config[name]) for name in names)
    blocks = ceil(m / tile_m) * ceil(n / tile_n) * batches * split
    resident = max(1, min(gpu.smem_per_sm // (shared_bytes(found, config) + 1024), 8 // (warps_m * warps_n)))
    at_once = min(resident, ceil(blocks / gpu.sm_count))
    waves = ceil(blocks / (gpu.sm_count * at_once))
    slower = 6 if found.halved else 2 if found.tf32 else 1
    rate = gpu.flops[DType.BF16] / gpu.sm_count / slower * 1e-6  # operations per microsecond
    reads = 1 + 16 * (warps_m / tile_m + warps_n / tile_n)  # factor: tensor cores wait for shared-memory loads
    step = 2 * tile_m * tile_n * tile_k * len(found.pairs) * reads / rate + 0.1 / at_once
    step *= 1.2 if at_once * warps_m * warps_n < _WARPS else 1.0
    compute_us = waves * at_once * step * ceil(ceil(k / tile_k) / split) + waves * 1.5
    memory_us = workload.compulsory_bytes / gpu.copy_bytes_per_s * 1e6
    split_k_us = 2.0 + split * m * n * batches * 8 / gpu.copy_bytes_per_s * 1e6 if split > 1 else 0.0
    return _LAUNCH_US + max(compute_us, memory_us) + 0.1 * min(compute_us, memory_us) + split_k_us
