"""Which products the family serves; parameter domains, reasons to change a parameter, limits."""

from __future__ import annotations

from math import prod

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.families.gemm.shape import Products, products
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.kernels.limits import gemm_sm90 as limits

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
    "split_k": (1, 2, 4, 8, 16),
}
# Parameters shared by the families that compute the result in tiles.
TILES = {
    ("tile_n", 1): "A wider tile: more products for each byte loaded.",
    ("tile_n", -1): "Narrower tiles: more of them, so the last wave is finer.",
    ("tile_m", 1): "A taller tile: more products for each byte loaded.",
    ("tile_m", -1): "Shorter tiles: more of them, so the last wave is finer.",
}
ORDER = {
    ("group", 1): "Thicker bands of tiles: fewer bands, each of which reads all of one operand.",
    ("group", -1): "Thinner bands of tiles: the operand rows that a band reuses take less of L2.",
    ("raster", 1): "Bands of tiles along m: each band reads all of the left operand, and its own part of the right.",
    ("raster", -1): "Bands of tiles along n: each band reads all of the right operand, and its own part of the left.",
    ("split_k", 1): "Twice as many blocks share the steps along k; a second kernel adds their partial results.",
    ("split_k", -1): "Half as many partial results to store and to add.",
}
# Domains of the family ``tf32``: a step along k has as many bytes as with 16-bit operands.
TF32_NAME = "matrix product in TF32"
TF32_DOMAINS = {**DOMAINS, "tile_k": (32, 64)}
KNOBS = {
    ("schedule", 1): "Two warpgroups take tiles in turn: one multiplies while the other stores.",
    ("schedule", -1): "Two warpgroups share a tile: twice the tile in the same registers, fewer loads per product.",
    **TILES,
    ("cluster_m", 1): "Two blocks share each tile of the right operand: one load from L2 serves both.",
    ("cluster_n", 1): "Two blocks share each tile of the left operand: one load from L2 serves both.",
    ("cluster_m", -1): "No clusters: blocks wait for no other block, and any free SM can run them.",
    ("cluster_n", -1): "No clusters: blocks wait for no other block, and any free SM can run them.",
    ("stages", 1): "One more tile in flight hides more of the memory's latency.",
    ("stages", -1): "Fewer tiles in flight: less shared memory, and a shorter prologue.",
    **ORDER,
    ("tile_k", 1): "Half as many steps, each with twice the products between its barriers.",
    ("tile_k", -1): "Twice as many stages fit: loads run further ahead.",
}


def matches(graph: Graph, tf32: bool = False) -> bool:
    """Whether the graph is matrix products (and an epilogue) with one output. ``tf32``: whether operands are rounded to
    TF32."""
    found = products(graph)
    return found is not None and found.tf32 == tf32 and not graph.reduced and len(graph.outputs) == 1


def kind_of(found: Products) -> str:
    """The kind of operands, by the name that the limits use."""
    return "fp32 halves" if found.halved else "TF32" if found.tf32 else "8 bits" if found.f8 else "16 bits"


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` exceeds; empty if it is feasible."""
    found = products(graph)
    assert found is not None
    return str(limits.why_not(config, prod(graph.space), kind_of(found), len(found.pairs), found.loads))


def settled(graph: Graph, config: Config) -> Config:
    """``config`` with at most the stages that fit."""
    found = products(graph)
    assert found is not None
    return {**config, "stages": min(int(config["stages"]), max(stages_that_fit(found, config), 2))}


def stages_that_fit(found: Products, config: Config) -> int:
    """Pipeline stages that fit into shared memory next to the epilogue's buffer."""
    return int(limits.stages_of(config, kind_of(found), found.loads))
