"""Which products the family serves, and with what: domains, what each parameter is moved for, limits."""

from __future__ import annotations

from math import prod

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.gemm.shape import Products, products

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
# Of every family that multiplies tile by tile.
TILES = {
    ("tile_n", 1): "A wider tile: more products for each byte loaded.",
    ("tile_n", -1): "Narrower tiles: more of them, so the last wave is finer.",
    ("tile_m", 1): "A higher tile: more products for each byte loaded.",
    ("tile_m", -1): "Lower tiles: more of them, so the last wave is finer.",
}
ORDER = {
    ("group", 1): "Higher bands: tiles in flight share more of the right operand in L2.",
    ("group", -1): "Lower bands: tiles in flight share more of the left operand in L2.",
    ("raster", 1): "Bands run down the rows: the left operand is read again rather than the right.",
    ("raster", -1): "Bands run along the columns: the right operand is read again rather than the left.",
    ("split_k", 1): "Twice as many blocks share the steps along k; a second kernel adds up what they find.",
    ("split_k", -1): "Half as many parts to store and to add up.",
}
# Of fp32 operands in TF32 (the family ``tf32``): steps of as many bytes as 16-bit ones take.
TF32_NAME = "matrix product in TF32"
TF32_DOMAINS = {**DOMAINS, "tile_k": (32, 64)}
KNOBS = {
    ("schedule", 1): "Two warpgroups take tiles in turn: one multiplies while the other stores.",
    ("schedule", -1): "Two warpgroups share a tile: twice the tile in the same registers, fewer loads a product.",
    **TILES,
    ("cluster_m", 1): "Two blocks share each tile of the right operand: one load from L2 serves both.",
    ("cluster_n", 1): "Two blocks share each tile of the left operand: one load from L2 serves both.",
    ("cluster_m", -1): "Blocks on their own: they wait for no other, and fit anywhere.",
    ("cluster_n", -1): "Blocks on their own: they wait for no other, and fit anywhere.",
    ("stages", 1): "One more tile in flight hides more of the memory's latency.",
    ("stages", -1): "Fewer tiles in flight: less shared memory, and a shorter way for the first to come through.",
    **ORDER,
    ("tile_k", 1): "Half as many steps, each with twice the products between its barriers.",
    ("tile_k", -1): "Twice as many stages fit: loads run further ahead.",
}
SMEM_BYTES = 227 << 10  # a block's most, on Hopper
EPI_STAGE = 2
RESIDENT = {1: 132, 2: 66, 4: 30}  # clusters of so many blocks at a time, as an H200 places them, one a multiprocessor


FULL = 264  # blocks beyond which a result is not cut into parts: a GPU twice full


def matches(graph: Graph, tf32: bool = False) -> bool:
    found = products(graph)
    return found is not None and found.tf32 == tf32 and not graph.reduced and len(graph.outputs) == 1


def accumulators(found: Products) -> int:
    """fp32 registers of a thread that its sums may take; the epilogue needs the rest. Where a step's sums are added to
    totals, they are in use one piece after another then."""
    return 192 if found.halved or found.f8 else 128


def steps_along_k(found: Products) -> tuple[str | int, ...]:
    """wgmma truncates: the sums of fp32 halves stay short. Rows of 8-bit operands have 128 bytes, those of TF32 ones
    128 or twice as many, like those of 16 bits."""
    return (64,) if found.halved else (128,) if found.f8 else (TF32_DOMAINS if found.tf32 else DOMAINS)["tile_k"]


def why_not(graph: Graph, config: Config) -> str:
    """The limit that ``config`` is beyond; empty where it is feasible. Accumulators fit registers, two stages and more
    fit shared memory, and one product alone is added up from parts, where tiles are few."""
    found = products(graph)
    assert found is not None
    tile, split = int(config["tile_m"]) * int(config["tile_n"]), int(config["split_k"])
    if crowded := beyond_room(found, config):
        return crowded
    if config["tile_k"] not in steps_along_k(found):
        of = "sums of fp32 halves" if found.halved else "operands of 8 bits" if found.f8 else "TF32"
        return f"steps of {config['tile_k']} along k, of {' or '.join(map(str, steps_along_k(found)))} for {of}"
    if split > 1 and len(found.pairs) > 1:
        return f"k in {split} parts, which is for one product alone"
    if split > 1 and split * prod(graph.space) > FULL * tile:
        tiles = -(-prod(graph.space) // tile)
        return f"k in {split} parts of {tiles} tiles: {split * tiles} blocks, of {FULL} at most"
    return ""


def beyond_room(found: Products, config: Config, beside: int = 0) -> str:
    """Which limit a tile's sums are beyond in registers, or its stages in shared memory, as :func:`stages_that_fit`."""
    registers = int(config["tile_m"]) * int(config["tile_n"]) * found.sums // (128 * team_groups(config))
    fit, stages, most = stages_that_fit(found, config, beside), int(config["stages"]), DOMAINS["stages"][-1]
    if registers > accumulators(found):
        return f"{registers} accumulators in a thread's registers, of {accumulators(found)} at most"
    if fit < 2:
        return f"shared memory of {SMEM_BYTES:,} bytes with room for {fit} stages of such tiles, of 2 at least"
    if stages > fit and stages != most:  # another bound would be the same kernel twice
        return f"{stages} stages, of {fit} that {SMEM_BYTES:,} bytes of shared memory have room for ({most}: all)"
    return ""


def stages_that_fit(found: Products, config: Config, beside: int = 0) -> int:
    """Pipeline stages that shared memory has room for, beside the results on their way out and ``beside`` bytes."""
    tile_m, tile_n, tile_k = (int(config[name]) for name in ("tile_m", "tile_n", "tile_k"))
    teams, (lefts, rights) = 2 if config["schedule"] == "pingpong" else 1, found.loads
    left = SMEM_BYTES - beside - 2048 - teams * team_groups(config) * 64 * 128 * EPI_STAGE
    return left // ((tile_m * lefts + tile_n * rights) * tile_k * found.itemsize)


def team_groups(config: Config) -> int:
    """Warpgroups that share a tile."""
    return 1 if config["schedule"] == "pingpong" else min(int(config["tile_m"]) // 64, 2)
