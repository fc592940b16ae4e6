"""Which products the family serves, and with what: domains, what each parameter is moved for, limits, the default."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.expr import Graph, Map
from cutegen_lab.templates.families.gemm.shape import Product, product

NAME = "matrix product"
DOMAINS = {
    "tile_m": (64, 128, 256),
    "tile_n": (32, 64, 128, 192, 256),
    "tile_k": (64, 128),
    "stages": (2, 3, 4, 5, 6, 7, 8),
    "cluster_m": (1, 2),
    "cluster_n": (1, 2),
    "schedule": ("cooperative", "pingpong"),
    "raster": ("m", "n"),
    "group": (1, 2, 4, 8, 16),
}
KNOBS = {
    ("schedule", 1): "Two warpgroups take tiles in turn: one multiplies while the other stores.",
    ("schedule", -1): "Two warpgroups share a tile: twice the tile in the same registers, fewer loads a product.",
    ("tile_n", 1): "A wider tile: more products for each byte loaded.",
    ("tile_n", -1): "Narrower tiles: more of them, so the last wave is finer.",
    ("tile_m", 1): "A higher tile: more products for each byte loaded.",
    ("tile_m", -1): "Lower tiles: more of them, so the last wave is finer.",
    ("cluster_m", 1): "Two blocks share each tile of the right operand: one load from L2 serves both.",
    ("cluster_n", 1): "Two blocks share each tile of the left operand: one load from L2 serves both.",
    ("cluster_m", -1): "Blocks on their own: they wait for no other, and fit anywhere.",
    ("cluster_n", -1): "Blocks on their own: they wait for no other, and fit anywhere.",
    ("stages", 1): "One more tile in flight hides more of the memory's latency.",
    ("stages", -1): "Fewer tiles in flight: less shared memory, and a shorter way for the first to come through.",
    ("group", 1): "Higher bands: tiles in flight share more of the right operand in L2.",
    ("group", -1): "Lower bands: tiles in flight share more of the left operand in L2.",
    ("raster", 1): "Bands run down the rows: the left operand is read again rather than the right.",
    ("raster", -1): "Bands run along the columns: the right operand is read again rather than the left.",
    ("tile_k", 1): "Half as many steps, each with twice the products between its barriers.",
    ("tile_k", -1): "Twice as many stages fit: loads run further ahead.",
}
SMEM_BYTES = 227 << 10  # a block's most, on Hopper
ACCUMULATORS = 128  # fp32 registers of a thread; the epilogue needs the rest
EPI_STAGE = 2
RESIDENT = {1: 132, 2: 66, 4: 30}  # clusters of so many blocks at a time, as an H200 places them, one a multiprocessor


def matches(graph: Graph) -> bool:
    return product(graph) is not None and not graph.reduced and len(graph.outputs) == 1


def feasible(graph: Graph, config: Config) -> bool:
    """What the module's own ``constraints`` say: accumulators fit registers, two stages and more fit shared memory."""
    fit, stages = stages_that_fit(config), int(config["stages"])
    registers = int(config["tile_m"]) * int(config["tile_n"]) // (128 * _team_groups(config))
    binds = stages <= fit or stages == DOMAINS["stages"][-1]  # other bounds would be the same kernel twice
    return registers <= ACCUMULATORS and fit >= 2 and binds


def stages_that_fit(config: Config) -> int:
    """Pipeline stages that shared memory has room for, beside the results on their way out."""
    tile_m, tile_n, tile_k = (int(config[name]) for name in ("tile_m", "tile_n", "tile_k"))
    teams = 2 if config["schedule"] == "pingpong" else 1
    return (SMEM_BYTES - 2048 - teams * _team_groups(config) * 64 * 128 * EPI_STAGE) // ((tile_m + tile_n) * tile_k * 2)


def _team_groups(config: Config) -> int:
    """Warpgroups that share a tile."""
    return 1 if config["schedule"] == "pingpong" else min(int(config["tile_m"]) // 64, 2)


def default_config(graph: Graph, workload: Workload) -> Config:
    """What :func:`_expected_us` expects to be fastest, with as many stages as fit."""
    found = product(graph)
    assert found is not None
    work = _Work(
        *found.sizes(graph, workload),
        bytes_moved=workload.compulsory_bytes,
        epilogue=sum(_OPERATION.get(node.op, 1) for node in graph.nodes if isinstance(node, Map)),
        even=_even_pitches(found, workload),
        dense_k=workload.inputs[found.right].stride[found.right_dims[-1] or 0] == 1,
    )
    tile, cluster_m, schedule = min(_CANDIDATES, key=lambda c: _expected_us(c, work))
    return {
        "tile_m": tile[0], "tile_n": tile[1], "tile_k": 128 if tile[0] == 64 else 64, "stages": 8,
        "cluster_m": cluster_m, "cluster_n": 1, "schedule": schedule, "raster": "m", "group": 8,
    }  # fmt: skip


# Microseconds that a multiprocessor of an H200 takes for 64 of k (benchmarks/results/gemm_sweep_on_gpu.json).
_STEP_US = {(64, 32): 0.14, (64, 64): 0.145, (64, 128): 0.20, (128, 128): 0.335, (128, 192): 0.52, (128, 256): 0.68}
_Candidate = tuple[tuple[int, int], int, str]  # tile, cluster_m, schedule
_CANDIDATES: list[_Candidate] = [
    *((tile, cluster_m, "cooperative") for tile in _STEP_US for cluster_m in (1, 2)),
    ((128, 128), 1, "pingpong"),
]
_LAUNCH_US, _BYTES_PER_US = 2.2, 4.1e6
_POWER_BOUND = 3e11  # operations from which the clock falls: loads saved are power for the tensor cores


_OPERATION = {"erf": 25, "exp": 8, "sigmoid": 8, "tanh": 8, "log": 8, "log1p": 8, "expm1": 8, "div": 6}


@dataclass(frozen=True)
class _Work:
    """``epilogue``: operations for each result, about. ``even``: operands' rows begin at multiples of 128 bytes.
    ``dense_k``: the right operand lies densely along k."""

    m: int
    n: int
    k: int
    batches: int
    bytes_moved: int
    epilogue: int
    even: bool
    dense_k: bool


def _expected_us(candidate: _Candidate, work: _Work) -> float:
    """Waves of tiles, each its steps along k and what begins and ends it; no less than memory takes."""
    tile, cluster_m, schedule = candidate
    clusters = ceil(work.m / (tile[0] * cluster_m)) * ceil(work.n / tile[1]) * work.batches
    waves = ceil(clusters / RESIDENT[cluster_m])
    step, ends = _STEP_US[tile], 0.3 + (0.1 + 0.02 * work.epilogue) * tile[0] * tile[1] / 4096
    if waves > 2:  # in one or two waves little is loaded twice
        step *= 0.75 + 0.25 * (128 / tile[0] + 128 / tile[1]) / 1.5
    if schedule == "pingpong":  # the ends of one team's tile are hidden behind the other's steps, if it has any
        step, ends = step * (1.0 if work.dense_k else 1.2), ends * (0.3 if waves > 2 else 1.2)
    if cluster_m > 1:
        power_bound = 2 * work.m * work.n * work.k * work.batches > _POWER_BOUND
        step, ends = step * (0.97 if power_bound else 0.99), ends + 0.6
    elif not work.even:  # rows begin in the middle of L2's lines: more of them are touched
        step *= 1.2 if tile[0] > 64 else 1.8
    computed, moved = waves * (step * ceil(work.k / 64) + ends), work.bytes_moved / _BYTES_PER_US
    return _LAUNCH_US + max(computed, moved) + 0.1 * min(computed, moved)


def _even_pitches(found: Product, workload: Workload) -> bool:
    """Do the operands' rows begin at multiples of 128 bytes?"""
    operands = [workload.inputs[found.left], workload.inputs[found.right]]
    return all(step * t.dtype.itemsize % 128 == 0 for t in operands for step in t.stride if step > 1)
