"""Limits of the column reduction."""

MAX_SMEM = 48 << 10


def why_not(config):
    """The limit that ``config`` exceeds, as text; "" if it is feasible."""
    threads = config["threads"] * config["slices"]
    if threads > 1024:
        return f"{threads:,} threads in a block (at most 1,024)"
    smem = 4 * threads * config["vec"]
    return f"{smem:,} bytes of shared memory for partial results (at most {MAX_SMEM:,})" if smem > MAX_SMEM else ""
