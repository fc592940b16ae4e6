"""Limits of the warp-specialised matrix products on Hopper's tensor cores."""

import math

SMEM_BYTES = 232448  # per block: 227 KiB
EPI_STAGE = 2  # epilogue stages (pieces of results being stored) per team
RESIDENT = {1: 132, 2: 66, 3: 39, 4: 30, 6: 17, 8: 15}  # by cluster size: clusters resident at a time on an H200
ALL_STAGES = 8  # as many stages as fit
MOST_BLOCKS = 8  # per cluster: the portable cluster size
MAX_TILE_N = 256
FULL = 264  # split-K is not used beyond this many blocks: two waves of an H200
# By kind of operands: values of tile_k, sums per product (fp32 halves: large terms of a step, their total, small terms;
# 8 bits: terms of a step, their total), bytes per element, and registers per thread for the sums. The remaining
# registers are for the epilogue, during which totals are in use one piece after another.
KINDS = {
    "16 bits": ((64, 128), 1, 2, 128),
    "fp32 halves": ((64,), 3, 2, 192),
    "8 bits": ((128,), 2, 1, 192),
    "TF32": ((32, 64), 1, 4, 128),
}


def groups_of(config):
    """Number of warpgroups that share a tile."""
    return 1 if config["schedule"] == "pingpong" else min(config["tile_m"] // 64, 2)


def stages_that_fit(tile_shape_mnk, consumers, loads, itemsize, beside=0):
    """Number of pipeline stages that fit a block's shared memory next to the epilogue stages and ``beside`` further
    bytes. ``loads``: tiles per stage, (left, right)."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    stage_bytes = (tile_m * loads[0] + tile_n * loads[1]) * tile_k * itemsize
    return (SMEM_BYTES - beside - 2048 - consumers * 64 * 128 * EPI_STAGE) // stage_bytes


def stages_of(config, kind, loads, beside=0):
    """:func:`stages_that_fit` for ``config``."""
    tile_shape_mnk = config["tile_m"], config["tile_n"], config["tile_k"]
    consumers = 2 if config["schedule"] == "pingpong" else groups_of(config)
    return stages_that_fit(tile_shape_mnk, consumers, loads, KINDS[kind][2], beside)


def beyond_room(config, kind, pairs, loads, beside=0):
    """The limit that a tile exceeds: registers for its sums or shared memory for its stages; "" if it fits."""
    _, sums, _, most = KINDS[kind]
    registers = config["tile_m"] * config["tile_n"] * sums * pairs // (128 * groups_of(config))
    if registers > most:
        return f"{registers} accumulators in a thread's registers, of {most} at most"
    fit, stages = stages_of(config, kind, loads, beside), config["stages"]
    if fit < 2:
        return f"shared memory of {SMEM_BYTES:,} bytes with room for {fit} stages of such tiles, of 2 at least"
    if stages > fit and stages != ALL_STAGES:  # a bound that does not bind would give the same kernel twice
        return f"{stages} stages, of {fit} that {SMEM_BYTES:,} bytes of shared memory have room for ({ALL_STAGES}: all)"
    return ""


def why_not(config, results, kind="16 bits", pairs=1, loads=(1, 1)):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. Accumulators must fit registers, at least two
    stages must fit shared memory, and split-K is for a single product with few tiles. ``results``: number of output
    elements. ``pairs``: number of products computed at once."""
    crowded = beyond_room(config, kind, pairs, loads)
    if crowded:
        return crowded
    steps, tile, split = KINDS[kind][0], config["tile_m"] * config["tile_n"], config["split_k"]
    if config["tile_k"] not in steps:
        return f"steps of {config['tile_k']} along k, of {' or '.join(map(str, steps))} for {kind}"
    if split > 1 and pairs > 1:
        return f"k in {split} parts, which is for one product alone"
    if split > 1 and split * results > FULL * tile:
        tiles = -(-results // tile)
        return f"k in {split} parts of {tiles} tiles: {split * tiles} blocks, of {FULL} at most"
    return ""


def exchange_shape(tile_m, cluster_n, values, teams, groups):
    """Shape of the buffers for ``values`` that blocks with the same rows exchange: (blocks, values, rows of a warp,
    buffers). Each warp has two buffers, since a warp may be one exchange ahead of another."""
    return (cluster_n, values, tile_m // (4 * groups), 8 * teams * groups) if cluster_n > 1 else (1, 1, 1, 1)


def why_not_rows(config, n, values, in_parts):
    """Like :func:`why_not`, for a kernel that reduces rows of ``n`` and exchanges ``values`` per row and block. A row
    lies in a tile or in the tiles of a cluster; it may be wider only if its reductions can be combined ``in_parts``."""
    tile_m, tile_n, cluster_m, cluster_n = (config[s] for s in ("tile_m", "tile_n", "cluster_m", "cluster_n"))
    held, groups = tile_n * cluster_n, groups_of(config)
    if n > held and not in_parts:
        return (
            f"rows of {n:,} in the tiles of a cluster, which hold {held:,} "
            f"({cluster_n} × {tile_n}, of {MOST_BLOCKS} × {MAX_TILE_N} at most)"
        )
    if cluster_m * cluster_n > MOST_BLOCKS:
        return f"a cluster of {cluster_m * cluster_n} blocks, of {MOST_BLOCKS} at most"
    teams = 2 if config["schedule"] == "pingpong" else 1
    beside = math.prod(exchange_shape(tile_m, cluster_n, values, teams, groups)) * 4
    return beyond_room(config, "16 bits", 1, (1, 1), beside)
