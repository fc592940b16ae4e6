"""Limits of the warp-specialised matrix products on Hopper's tensor cores."""

import math

SMEM_BYTES = 232448  # per block: 227 KiB
EPI_STAGE = 2  # epilogue stages (pieces of results being stored) per team
RESIDENT = {1: 132, 2: 66, 3: 39, 4: 30, 6: 17, 8: 15}  # cluster size: number of clusters that an H200 runs together
ALL_STAGES = 8  # this value means: as many stages as fit
MOST_BLOCKS = 8  # per cluster: the largest portable cluster size
MAX_TILE_N = 256
FULL = 264  # split-K is not used beyond this many blocks: two waves of an H200
# By kind of operands: legal tile_k, sums per product (fp32 halves: large terms of a step, their total, small terms;
# 8 bits: terms of a step, their total), bytes per element, and maximum number of registers per thread for the sums. The
# epilogue uses the remaining registers, and processes the totals piece by piece.
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
        return f"{registers} accumulators in a thread's registers (at most {most})"
    fit, stages = stages_of(config, kind, loads, beside), config["stages"]
    if fit < 2:
        return f"{SMEM_BYTES:,} bytes of shared memory hold {fit} stages of such tiles (at least 2 are needed)"
    if stages > fit and stages != ALL_STAGES:  # a higher bound gives the same kernel as ALL_STAGES
        return f"{stages} stages; {fit} fit {SMEM_BYTES:,} bytes of shared memory ({ALL_STAGES} means: as many as fit)"
    return ""


def why_not(config, results, kind="16 bits", pairs=1, loads=(1, 1)):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. Accumulators must fit registers, at least two
    stages must fit shared memory, and split-K is for a single product with few tiles. ``results``: number of output
    elements. ``pairs``: number of products computed together."""
    crowded = beyond_room(config, kind, pairs, loads)
    if crowded:
        return crowded
    steps, tile, split = KINDS[kind][0], config["tile_m"] * config["tile_n"], config["split_k"]
    if config["tile_k"] not in steps:
        return f"tile_k of {config['tile_k']} (must be {' or '.join(map(str, steps))} for {kind})"
    if split > 1 and pairs > 1:
        return f"split_k of {split} with several products: split-K is for a single product"
    if split > 1 and split * results > FULL * tile:
        tiles = -(-results // tile)
        return f"split_k of {split} with {tiles} tiles: {split * tiles} blocks (at most {FULL})"
    return ""


def exchange_shape(tile_m, cluster_n, values, teams, groups):
    """Shape of the buffers for ``values`` that blocks with the same rows exchange: (blocks, values, rows of a warp,
    buffers). Each warp has two buffers, since a warp may be one exchange ahead of another."""
    return (cluster_n, values, tile_m // (4 * groups), 8 * teams * groups) if cluster_n > 1 else (1, 1, 1, 1)


def why_not_rows(config, n, values, in_parts):
    """Like :func:`why_not`, for a kernel that reduces rows of ``n`` and exchanges ``values`` per row and block. A row
    lies in the tiles of a cluster; it may be wider only if row partials can be combined (``in_parts``)."""
    tile_m, tile_n, cluster_m, cluster_n = (config[s] for s in ("tile_m", "tile_n", "cluster_m", "cluster_n"))
    held, groups = tile_n * cluster_n, groups_of(config)
    if n > held and not in_parts:
        return (
            f"rows of {n:,} are wider than the tiles of a cluster, {held:,} "
            f"({cluster_n} × {tile_n}; at most {MOST_BLOCKS} × {MAX_TILE_N})"
        )
    if cluster_m * cluster_n > MOST_BLOCKS:
        return f"a cluster of {cluster_m * cluster_n} blocks (at most {MOST_BLOCKS})"
    teams = 2 if config["schedule"] == "pingpong" else 1
    beside = math.prod(exchange_shape(tile_m, cluster_n, values, teams, groups)) * 4
    return beyond_room(config, "16 bits", 1, (1, 1), beside)
