"""Limits of matrix products on the tensor cores of GPUs before Hopper."""

MAX_SUMS = 128  # accumulators per thread
MAX_SUMS_OF_HALVES = 64  # accumulators per thread for split fp32: the halves need registers too
BLOCKS_PER_SM = 4  # split-K is not used beyond this many blocks per SM


def accumulators(config, pairs, halved):
    """Accumulators per thread. Split fp32 (``halved``) has two sets: for the step along k, and for the total."""
    threads = 32 * config["warps_m"] * config["warps_n"]
    return config["tile_m"] * config["tile_n"] * pairs * (2 if halved else 1) // threads


def shared_bytes(tile_shape_mnk, stages, lefts, rights, itemsize):
    """Shared memory of a block: the operands' stages, or a tile of results if that is larger."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    rows = tile_m * lefts + tile_n * rights
    return max(stages * rows * tile_k * itemsize, tile_m * (tile_n * 4 + 16))


def why_not(config, results, lefts, rights, itemsize, pairs, halved, smem_bytes, sms):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. ``results``: number of output elements.
    ``pairs``: number of products, of ``lefts`` A and ``rights`` B operands with ``itemsize`` bytes per element.
    ``smem_bytes``: shared memory per block. ``sms``: SMs of the GPU."""
    for side in ("m", "n"):
        tile, warps = config[f"tile_{side}"], config[f"warps_{side}"]
        if tile < 16 * warps:
            return f"warps_{side} of {warps} need at least 16 each, more than tile_{side} of {tile}"
    held, most = accumulators(config, pairs, halved), MAX_SUMS_OF_HALVES if halved else MAX_SUMS
    if held > most:
        return f"{held} accumulators in a thread's registers (at most {most})"
    tile_shape_mnk = (config["tile_m"], config["tile_n"], config["tile_k"])
    used = shared_bytes(tile_shape_mnk, config["stages"], lefts, rights, itemsize)
    if used > smem_bytes:
        return f"{used:,} bytes of shared memory (at most {smem_bytes:,})"
    split, tile = config["split_k"], config["tile_m"] * config["tile_n"]
    if split > 1 and pairs > 1:
        return f"split_k of {split} with several products: split-K is for a single product"
    if split > 1 and split * results > BLOCKS_PER_SM * sms * tile:
        tiles = -(-results // tile)
        return f"split_k of {split} with {tiles} tiles: {split * tiles} blocks (at most {BLOCKS_PER_SM * sms})"
    return ""
