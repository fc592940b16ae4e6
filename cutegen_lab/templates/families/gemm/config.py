"""Which products the family serves, and with what: domains, what each parameter is moved for, limits, the default."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as every
from math import ceil

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.gemm.shape import product

NAME = "matrix product"
_STAGES = (2, 3, 4, 5, 6, 7, 8)
DOMAINS = {
    "tile_m": (64, 128, 256),
    "tile_n": (32, 64, 128, 192, 256),
    "tile_k": (64, 128),
    "stages": _STAGES,
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
    ("stages", -1): "Less shared memory.",
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
MULTIPROCESSORS = 132


def matches(graph: Graph) -> bool:
    return product(graph) is not None and not graph.reduced and len(graph.outputs) == 1


def feasible(graph: Graph, config: Config) -> bool:
    """What the module's own ``constraints`` say."""
    tile_m, tile_n, tile_k, stages = (int(config[name]) for name in ("tile_m", "tile_n", "tile_k", "stages"))
    pingpong = config["schedule"] == "pingpong"
    team_groups = 1 if pingpong else min(tile_m // 64, 2)
    loaded = stages * ((tile_m + tile_n) * tile_k * 2 + 16)
    stored = (2 if pingpong else team_groups) * 64 * 128 * EPI_STAGE
    return tile_m * tile_n <= ACCUMULATORS * 128 * team_groups and loaded + stored + 2048 <= SMEM_BYTES


def most_stages(graph: Graph, config: Config) -> int:
    """Pipeline stages that shared memory has room for; 0 where the accumulators do not fit registers."""
    return max((s for s in _STAGES if feasible(graph, {**config, "stages": s})), default=0)


def default_config(graph: Graph, workload: Workload) -> Config:
    """The tile, cluster and schedule that a simple count of waves expects to be fastest."""
    found = product(graph)
    assert found is not None
    return min(_candidates(graph), key=lambda config: _cost(config, *found.sizes(graph, workload)))


def _candidates(graph: Graph) -> Iterator[dict[str, int | str]]:
    shapes = ((128, 256), (256, 128), (128, 192), (128, 128), (64, 256), (64, 128), (128, 64), (64, 64))
    for (tile_m, tile_n), cluster_m, cluster_n, schedule in every(shapes, (1, 2), (1, 2), DOMAINS["schedule"]):
        config = {
            "tile_m": tile_m, "tile_n": tile_n, "tile_k": 64, "stages": 2, "cluster_m": cluster_m,
            "cluster_n": cluster_n, "schedule": schedule, "raster": "m", "group": 8,
        }  # fmt: skip
        config["stages"] = most_stages(graph, config)
        if config["stages"]:
            yield config


def _cost(config: Config, m: int, n: int, k: int, batches: int) -> float:
    """Expected time, in steps of a multiprocessor's tensor cores along k for a tile of 64×64."""
    tile_m, tile_n, cluster_m, cluster_n = (int(config[x]) for x in ("tile_m", "tile_n", "cluster_m", "cluster_n"))
    size = cluster_m * cluster_n
    clusters = ceil(m / (tile_m * cluster_m)) * ceil(n / (tile_n * cluster_n)) * batches
    waves = ceil(clusters / (MULTIPROCESSORS // size))
    area = tile_m * tile_n / 4096
    loaded = (tile_m / cluster_n + tile_n / cluster_m) / 64  # from L2, a step
    step = max(area, 0.55 * loaded * 2, 1.5)
    epilogue = 4 * area * (0.35 if config["schedule"] == "pingpong" else 1.0)
    return waves * (step * ceil(k / 64) + epilogue) * (1.0 + 0.01 * (size > 2)) + 8
