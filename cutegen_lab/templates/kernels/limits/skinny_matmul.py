"""Limits of the kernel for products with few rows."""

MOST = 16  # few rows that a block takes
MANY = 3  # few rows of 16 bits from which they go through the tensor cores
MAX_SUMS = 64  # of a thread, in registers
MAX_LOADS = 16  # vectors of the large operand that a thread has in flight, in registers
SMEM_BYTES = 64 << 10


def tile_of(few):
    """Of ``few`` rows, how many a block takes: the fewest in as many blocks as it needs."""
    return -(-few // -(-few // MOST))


def by_mma(config, few, halves):
    """Do the tensor cores multiply, where sizes allow? ``halves``: operands of 16 bits."""
    lanes = config["threads_n"] % 8 == 0 and config["threads_k"] % 4 == 0
    return halves and tile_of(few) >= MANY and lanes


def smem_bytes(config, tile, pairs):
    """What warps, and a cluster's blocks, leave for each other: at most, whichever way the large operand lies."""
    warps = max(config["threads_k"] // max(32 // config["threads_n"], 1), 1)
    return 4 * config["rows"] * config["threads_n"] * tile * pairs * (warps + config["cluster_k"])


def why_not(config, few, pairs, halves):
    """The limit that ``config`` is beyond; empty where it is feasible. ``few``: rows of the small operand; ``pairs``:
    products that are computed at once."""
    threads = config["threads_n"] * config["threads_k"]
    if threads % 32 or threads > 1024:
        return f"{threads:,} threads in a block, which takes whole warps of 32 and up to 1,024"
    sums = config["rows"] * (4 if by_mma(config, few, halves) else tile_of(few))
    if sums > MAX_SUMS:
        return f"{sums} sums in a thread's registers, of {MAX_SUMS} at most"
    vectors = config["rows"] * config["loads"]
    if vectors > MAX_LOADS:
        return f"{vectors} vectors in flight in a thread's registers, of {MAX_LOADS} at most"
    used = smem_bytes(config, tile_of(few), pairs)
    return f"{used:,} bytes of shared memory, of {SMEM_BYTES:,} at most" if used > SMEM_BYTES else ""
