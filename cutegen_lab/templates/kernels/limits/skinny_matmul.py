"""Limits of matrix products with few rows."""

MOST = 16  # maximum number of rows of the small operand per block
MANY = 3  # from this number of rows on, the tensor cores multiply 16-bit operands
MAX_SUMS = 64  # accumulators per thread
MAX_LOADS = 16  # vectors of the large operand in flight per thread, in registers
SMEM_BYTES = 64 << 10


def tile_of(few):
    """Rows of the small operand per block: its ``few`` rows are split evenly over the fewest blocks."""
    return -(-few // -(-few // MOST))


def by_mma(config, few, halves):
    """Whether the tensor cores are used, if the sizes allow it. ``halves``: operands have 16 bits."""
    lanes = config["threads_n"] % 8 == 0 and config["threads_k"] % 4 == 0
    return halves and tile_of(few) >= MANY and lanes


def smem_bytes(config, tile, pairs):
    """Upper bound of the shared memory for partial results of warps and of a cluster's blocks, in either layout."""
    warps = max(config["threads_k"] // max(32 // config["threads_n"], 1), 1)
    return 4 * config["rows"] * config["threads_n"] * tile * pairs * (warps + config["cluster_k"])


def why_not(config, few, pairs, halves):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. ``few``: rows of the small operand. ``pairs``:
    number of products computed together. ``halves``: operands have 16 bits."""
    threads = config["threads_n"] * config["threads_k"]
    if threads % 32 or threads > 1024:
        return f"{threads:,} threads in a block (must be a multiple of 32, at most 1,024)"
    sums = config["rows"] * (4 if by_mma(config, few, halves) else tile_of(few))
    if sums > MAX_SUMS:
        return f"{sums} sums in a thread's registers (at most {MAX_SUMS})"
    vectors = config["rows"] * config["loads"]
    if vectors > MAX_LOADS:
        return f"{vectors} vectors in flight in a thread's registers (at most {MAX_LOADS})"
    used = smem_bytes(config, tile_of(few), pairs)
    return f"{used:,} bytes of shared memory (at most {SMEM_BYTES:,})" if used > SMEM_BYTES else ""
