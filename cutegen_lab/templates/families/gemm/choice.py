"""The default config: the candidate with the shortest estimated time on an H200."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.families.gemm.config import DOMAINS, TF32_DOMAINS, why_not
from cutegen_lab.templates.families.gemm.shape import Products, products
from cutegen_lab.templates.frontend.expr import Elementwise, Graph
from cutegen_lab.templates.kernels.limits.gemm_sm90 import RESIDENT

# Microseconds per 64 elements along k on one SM of an H200, by tile (benchmarks/results/gemm_sweep_on_gpu.json and
# gemm_fused_on_gpu.json). The right operands of several products count as one.
_STEP_US = {(64, 32): 0.14, (64, 64): 0.145, (64, 128): 0.20, (128, 64): 0.20, (128, 128): 0.335, (128, 192): 0.52,
            (128, 256): 0.68, (256, 128): 0.672}  # fmt: skip
# For split fp16 (gemm_fp32_on_gpu.json): 64×128 with the schedule pingpong, other tiles cooperative.
_F32_STEP_US = {(64, 32): 0.22, (64, 64): 0.33, (64, 128): 0.595, (128, 128): 1.15}
# For 128 8-bit elements along k (gemm_f8_on_gpu.json), without clusters.
_F8_STEP_US = {(64, 32): 0.15, (64, 64): 0.19, (64, 128): 0.30, (128, 128): 0.38, (128, 192): 0.53}
LAUNCH_US, BYTES_PER_US = 2.2, 4.1e6
# Number of operations from which power limits the clock, so that clusters gain nothing.
_POWER_BOUND = 8e11
_OPERATION = {"erf": 16, "exp": 8, "sigmoid": 8, "tanh": 8, "log": 8, "log1p": 8, "expm1": 8, "div": 6}


def default_config(graph: Graph, workload: Workload) -> Config:
    """The candidate that :func:`expected_us` expects to be fastest, with as many stages as fit."""
    found = products(graph)
    assert found is not None
    work = work_of(graph, workload)
    candidates = filter(lambda config: not why_not(graph, config), _candidates(found))
    return min(candidates, key=lambda config: expected_us(config, work))


def estimate_us(graph: Graph, workload: Workload, config: Config) -> float | None:
    """:func:`expected_us` on an H200; None for a tile that was not measured."""
    work = work_of(graph, workload)
    tile_m, tile_n = int(config["tile_m"]), int(config["tile_n"])
    known = _F32_STEP_US if work.halved else _F8_STEP_US if work.f8 else _STEP_US
    wide = tile_n if work.halved else tile_n * work.products
    return expected_us(config, work) if (tile_m, wide) in known and config["cluster_n"] == 1 else None


def work_of(graph: Graph, workload: Workload) -> Work:
    """The parameters of the time model for the graph's products."""
    found = products(graph)
    assert found is not None
    right = found.rights[0]
    m, n, k, batches = found.sizes(graph, workload)
    return Work(
        m, n, ceil(k * found.itemsize / 2), batches,
        products=len(found.pairs),
        halved=found.halved,
        f8=found.f8,
        bytes_moved=workload.compulsory_bytes,
        epilogue=sum(_OPERATION.get(n.op, 1) for n in graph.nodes if isinstance(n, Elementwise)) + 14 * found.halved,
        matrices=sum(None not in load.dims for _, load in graph.loads()),
        even=_even_pitches(found, workload),
        dense_k=found.along_k or workload.inputs[right.tensor].stride[right.dims[-1] or 0] == 1,
    )  # fmt: skip


def _candidates(found: Products) -> list[Config]:
    count = len(found.pairs)
    if found.halved:
        shapes = [(tile, 1, "pingpong" if tile == (64, 128) else "cooperative") for tile in _F32_STEP_US]
    else:
        wide = [tile for tile in (_F8_STEP_US if found.f8 else _STEP_US) if count > 1 or tile != (256, 128)]
        tiles = [(tile_m, tile_n // count) for tile_m, tile_n in wide if tile_n // count in DOMAINS["tile_n"]]
        shapes = [(tile, cluster_m, "cooperative") for tile in tiles for cluster_m in (1, 2)]
        clusters = (1,) if found.tf32 else (1, 2)  # in TF32, clusters of 2 take 1% longer
        shapes += [((128, 128), cluster_m, "pingpong") for cluster_m in clusters if count == 1 and not found.f8]
    shorter, longer = (TF32_DOMAINS if found.tf32 else DOMAINS)["tile_k"]
    return [
        {
            "tile_m": tile[0], "tile_n": tile[1], "tile_k": tile_k, "stages": 8, "cluster_m": cluster_m,
            "cluster_n": 1, "schedule": schedule, "raster": "m", "group": 8, "split_k": split,
        }
        for tile, cluster_m, schedule in shapes for split in (1, 2, 4, 8, 16) for tile_k in (longer, shorter)
        if tile_k == shorter or found.f8 or (tile[0] == 64 and count == 1)
    ]  # fmt: skip


@dataclass(frozen=True)
class Work:
    """Parameters of :func:`expected_us`. ``k``: in 16-bit elements. ``epilogue``: approximate number of operations for
    each result. ``matrices``: number of matrices of the result's size that the epilogue reads. ``even``: operands' rows
    begin at multiples of 128 bytes. ``dense_k``: the right operand is contiguous along k."""

    m: int
    n: int
    k: int
    batches: int
    products: int
    halved: bool
    f8: bool
    bytes_moved: int
    epilogue: int
    matrices: int
    even: bool
    dense_k: bool


def expected_us(config: Config, work: Work) -> float:
    """Estimated time in microseconds: mainly the longer of two times: waves of tiles (steps along k, prologue,
    epilogue), and memory traffic."""
    tile_m, tile_n, cluster_m, split = (int(config[name]) for name in ("tile_m", "tile_n", "cluster_m", "split_k"))
    clusters = ceil(work.m / (tile_m * cluster_m)) * ceil(work.n / tile_n) * work.batches * split
    waves = ceil(clusters / RESIDENT[cluster_m])
    if work.halved:
        step = _F32_STEP_US[tile_m, tile_n] * work.products
    elif work.f8:
        step = _F8_STEP_US[tile_m, tile_n * work.products] * (0.93 if cluster_m > 1 else 1.0)
    else:
        step = _STEP_US[tile_m, tile_n * work.products]
    ends_us = 0.3 + (0.1 + 0.02 * work.epilogue * (split == 1)) * tile_m * tile_n / 4096
    if waves > 2 and not work.halved:  # in the first two waves, few tiles are loaded again
        step *= 0.9 + 0.1 * (128 / tile_m + 128 / (tile_n * work.products)) / 1.5
    read = work.matrices * (split == 1) * tile_m * tile_n / 4096
    if config["schedule"] == "pingpong":  # one team's epilogue overlaps the other's steps
        step, ends_us = step * (1.0 if work.dense_k or work.halved else 1.2), ends_us * (0.15 if waves > 2 else 1.2)
        ends_us += 0.6 * read  # the epilogue itself loads the matrices
        light = 2 * work.m * work.n * work.k * work.batches < _POWER_BOUND and not read
        if cluster_m > 1 and waves > 2 and light:
            step, ends_us = step * 0.96, ends_us - 0.5
    else:
        ends_us += 0.1 * read  # the matrices are loaded ahead of the epilogue
    if cluster_m > 1:
        ends_us += 0.6
    elif not work.even:  # rows are not aligned to L2 lines: more lines are read
        step *= 1.2 if tile_m > 64 else 1.8
    compute_us, memory_us = waves * (step * ceil(ceil(work.k / 64) / split) + ends_us), work.bytes_moved / BYTES_PER_US
    split_k_us = 2.0 + split * work.m * work.n * work.batches * 4 / BYTES_PER_US if split > 1 else 0.0
    return LAUNCH_US + max(compute_us, memory_us) + 0.1 * min(compute_us, memory_us) + split_k_us


def _even_pitches(found: Products, workload: Workload) -> bool:
    """Whether the operands' rows begin at multiples of 128 bytes. The rows of converted copies always do."""
    operands = [workload.inputs[operand.tensor] for operand in found.operands]
    steps = [step * t.dtype.itemsize for t in operands for step in t.stride if step > 1]
    return found.halved or all(step % 128 == 0 for step in steps) or any(step % 16 for step in steps)
