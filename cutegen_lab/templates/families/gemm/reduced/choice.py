"""The default config, and whether one kernel is faster than two, by estimated time on an H200."""

from __future__ import annotations

import math
from dataclasses import replace
from math import ceil

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.families import gemm
from cutegen_lab.templates.families.gemm.choice import BYTES_PER_US, LAUNCH_US, expected_us, work_of
from cutegen_lab.templates.families.gemm.reduced.config import DOMAINS, row_length, why_not
from cutegen_lab.templates.families.gemm.reduced.steps import steps
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.kernels.limits.gemm_sm90 import RESIDENT
from cutegen_lab.templates.kernels.limits.skinny_matmul import MOST as FEW_ROWS

# Microseconds per 64 elements along k on one SM of an H200, by tile (benchmarks/results/gemm_reduced_on_gpu.json).
_STEP_US = {(64, 32): 0.14, (64, 64): 0.145, (64, 128): 0.20, (64, 192): 0.29, (64, 256): 0.35, (128, 128): 0.335,
            (128, 192): 0.51, (128, 256): 0.66}  # fmt: skip
_BEGIN_US = 4.0  # time of a launch and of the loads of the first tiles


def default_config(graph: Graph, workload: Workload) -> Config:
    """The candidate that :func:`_expected_us` expects to be fastest, with as many stages as fit; if none is feasible,
    one of those that hold the largest part of a row."""
    feasible = [config for config in _candidates() if not why_not(graph, config)]
    return min(feasible or _candidates()[-2:], key=lambda config: _expected_us(graph, workload, config))


def slowness(graph: Graph, workload: Workload) -> float:
    """1 if one kernel is faster than two, of which the first writes the product and the second reads it again;
    otherwise infinite."""
    return 1.0 if _faster_than_two(graph, workload) else math.inf


def _faster_than_two(graph: Graph, workload: Workload) -> bool:
    config, work = default_config(graph, workload), work_of(graph, workload)
    if why_not(graph, config) or min(work.m, work.n) <= FEW_ROWS:  # the family ``skinny`` serves these
        return False
    alone = gemm.default_config(graph, workload)
    if not _whole(graph, config):  # one kernel takes as long as the product alone without its stores
        return alone["split_k"] == 1
    work = replace(work, epilogue=2)  # the row kernel computes the other operations
    between = 2 * work.m * work.n * work.batches
    written = sum(tensor.nbytes for tensor in workload.outputs)
    product = expected_us(alone, work)
    return _expected_us(graph, workload, config) < product + LAUNCH_US + (between + written) / BYTES_PER_US


def _candidates() -> list[Config]:
    """Candidates; the last two hold the largest part of a row."""
    shapes = [(64, tile_n, "cooperative") for tile_n in (32, 64, 128)]
    shapes += [(64, tile_n, "pingpong") for tile_n in (64, 128, 192, 256)]
    shapes += [(128, tile_n, "cooperative") for tile_n in (128, 192, 256)]
    return [
        {
            "tile_m": tile_m, "tile_n": tile_n, "tile_k": 64, "stages": 8, "cluster_m": cluster_m,
            "cluster_n": cluster_n, "schedule": schedule, "raster": "m", "group": 8,
        }
        for tile_m, tile_n, schedule in shapes for cluster_n in DOMAINS["cluster_n"] for cluster_m in (1, 2)
    ]  # fmt: skip


def _whole(graph: Graph, config: Config) -> bool:
    return row_length(graph) <= int(config["tile_n"]) * int(config["cluster_n"])


def _expected_us(graph: Graph, workload: Workload, config: Config) -> float:
    """Estimated time in microseconds: mainly the longer of two times: waves of tiles (steps along k, epilogue), and
    memory traffic."""
    work, n = work_of(graph, workload), row_length(graph)
    tile_m, tile_n, cluster_m, cluster_n = (int(config[s]) for s in ("tile_m", "tile_n", "cluster_m", "cluster_n"))
    clusters = ceil(work.m / (tile_m * cluster_m)) * ceil(n / (tile_n * cluster_n)) * work.batches
    waves = ceil(clusters / RESIDENT.get(cluster_m * cluster_n, 1))
    whole = _whole(graph, config)
    along_k = ceil(work.k / 64) * _STEP_US[tile_m, tile_n]
    if tile_m == 64 and tile_n > 128 and (cluster_m == 1 or not whole):  # each block loads many bytes for few rows
        along_k *= 1.14 + 0.03 * cluster_n
    read = sum(graph.varies(index) for index, _ in graph.loads())
    ends_us = 1.0 + 0.3 * read + 0.15 * work.epilogue + 0.3 * len(steps(graph)) * (whole and cluster_n > 1)
    ends_us *= tile_m * tile_n / 32768
    if config["schedule"] == "pingpong":  # one team's epilogue almost overlaps the other's steps
        compute_us = waves * (along_k + 0.8 * tile_m * tile_n / 16384) + ends_us
    else:
        compute_us = waves * (along_k + ends_us)
    memory_us = work.bytes_moved / BYTES_PER_US
    combine_us = 0.0 if whole else LAUNCH_US + 8 * work.m * work.batches * ceil(n / tile_n) / BYTES_PER_US
    return _BEGIN_US + max(compute_us, memory_us) + 0.1 * min(compute_us, memory_us) + combine_us
