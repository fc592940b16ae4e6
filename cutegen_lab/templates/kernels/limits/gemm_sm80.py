"""Limits of the matrix product for the tensor cores of GPUs before Hopper."""

MAX_SUMS = 128  # accumulators of a thread, in registers …
MAX_SUMS_OF_HALVES = 64  # … where fp32 is multiplied as two halves, which need registers too
BLOCKS_PER_SM = 4  # beyond which a result is not cut into parts


def accumulators(config, pairs, halved):
    """A thread's; products of halves have one for the step along k and one for the total."""
    threads = 32 * config["warps_m"] * config["warps_n"]
    return config["tile_m"] * config["tile_n"] * pairs * (2 if halved else 1) // threads


def shared_bytes(tile_shape_mnk, stages, lefts, rights, itemsize):
    """Of the operands' stages, or of a tile of results where that is more."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    rows = tile_m * lefts + tile_n * rights
    return max(stages * rows * tile_k * itemsize, tile_m * (tile_n * 4 + 16))


def why_not(config, results, lefts, rights, itemsize, pairs, halved, smem_bytes, sms):
    """The limit that ``config`` is beyond; empty where it is feasible. ``results``: how many numbers are computed, by
    ``pairs`` of ``lefts`` and ``rights`` operands of ``itemsize`` bytes; ``smem_bytes``: a block's at most, on a GPU
    of ``sms`` multiprocessors."""
    for side in ("m", "n"):
        tile, warps = config[f"tile_{side}"], config[f"warps_{side}"]
        if tile < 16 * warps:
            return f"warps_{side} of {warps}, each with 16 at least of a tile_{side} of {tile}"
    held, most = accumulators(config, pairs, halved), MAX_SUMS_OF_HALVES if halved else MAX_SUMS
    if held > most:
        return f"{held} accumulators in a thread's registers, of {most} at most"
    tile_shape_mnk = (config["tile_m"], config["tile_n"], config["tile_k"])
    used = shared_bytes(tile_shape_mnk, config["stages"], lefts, rights, itemsize)
    if used > smem_bytes:
        return f"{used:,} bytes of shared memory, of {smem_bytes:,} at most"
    split, tile = config["split_k"], config["tile_m"] * config["tile_n"]
    if split > 1 and pairs > 1:
        return f"k in {split} parts, which is for one product alone"
    if split > 1 and split * results > BLOCKS_PER_SM * sms * tile:
        tiles = -(-results // tile)
        return f"k in {split} parts of {tiles} tiles: {split * tiles} blocks, of {BLOCKS_PER_SM * sms} at most"
    return ""
