"""Which products the family serves, and with what: domains, what each parameter is moved for, limits."""

from __future__ import annotations

from math import prod

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.gemm.config import ORDER, TILES
from cutegen_lab.templates.families.gemm.shape import Products, products

NAME = "matrix product by mma.sync"
DOMAINS = {
    "tile_m": (16, 32, 64, 128, 256),
    "tile_n": (32, 64, 128, 256),
    "tile_k": (32, 64),
    "stages": (2, 3, 4, 5, 6),
    "warps_m": (1, 2, 4),
    "warps_n": (1, 2, 4),
    "raster": ("m", "n"),
    "group": (1, 2, 4, 8, 16),
    "split_k": (1, 2, 4, 8, 16),
}
KNOBS = {
    **TILES,
    ("tile_k", 1): "Half as many steps along k, each with twice the products between its barriers.",
    ("tile_k", -1): "Twice as many stages fit: loads run further ahead.",
    ("stages", 1): "One more tile in flight hides more of the memory's latency.",
    ("stages", -1): "Fewer tiles in flight: less shared memory, so that more blocks fit an SM.",
    ("warps_m", 1): "Twice the warps share a tile: half the sums a thread, more to hide waits behind.",
    ("warps_m", -1): "Half the warps: each reads less of shared memory for what it multiplies.",
    ("warps_n", 1): "Twice the warps share a tile: half the sums a thread, more to hide waits behind.",
    ("warps_n", -1): "Half the warps: each reads less of shared memory for what it multiplies.",
    **ORDER,
}
MAX_SUMS = {False: 128, True: 64}  # a thread's, of operands as they are and of fp32's halves, which need registers too
FULL = 4  # blocks a multiprocessor, beyond which a result is not cut into parts


def matches(graph: Graph) -> bool:
    found = products(graph)
    return found is not None and not found.of_8_bits and not graph.reduced and len(graph.outputs) == 1


def sums(found: Products, config: Config) -> int:
    """A thread's accumulators; fp32 products have one for the step and one for the total."""
    threads = 32 * int(config["warps_m"]) * int(config["warps_n"])
    return int(config["tile_m"]) * int(config["tile_n"]) * len(found.pairs) * (2 if found.halved else 1) // threads


def shared_bytes(found: Products, config: Config) -> int:
    """Of the operands' stages, or of a tile of results where that is more."""
    tile_m, tile_n, tile_k, stages = (int(config[name]) for name in ("tile_m", "tile_n", "tile_k", "stages"))
    rows = tile_m * len(found.lefts) + tile_n * len(found.rights)
    return max(stages * rows * tile_k * (4 if found.f32 else 2), tile_m * (tile_n * 4 + 16))


def why_not(graph: Graph, config: Config, smem_bytes: int, sms: int) -> str:
    """The limit that ``config`` is beyond on a GPU with so much shared memory for a block and so many multiprocessors;
    empty where it is feasible."""
    found = products(graph)
    assert found is not None
    for side in ("m", "n"):
        tile, warps = int(config[f"tile_{side}"]), int(config[f"warps_{side}"])
        if tile < 16 * warps:
            return f"warps_{side} of {warps}, each with 16 at least of a tile_{side} of {tile}"
    if (held := sums(found, config)) > MAX_SUMS[found.halved]:
        return f"{held} accumulators in a thread's registers, of {MAX_SUMS[found.halved]} at most"
    if (used := shared_bytes(found, config)) > smem_bytes:
        return f"{used:,} bytes of shared memory, of {smem_bytes:,} at most"
    split, tile = int(config["split_k"]), int(config["tile_m"]) * int(config["tile_n"])
    if split > 1 and len(found.pairs) > 1:
        return f"k in {split} parts, which is for one product alone"
    if split > 1 and split * prod(graph.space) > FULL * sms * tile:
        tiles = -(-prod(graph.space) // tile)
        return f"k in {split} parts of {tiles} tiles: {split * tiles} blocks, of {FULL * sms} at most"
    return ""
