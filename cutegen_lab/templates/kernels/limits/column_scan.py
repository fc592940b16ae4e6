"""Limits of the column scan."""

MAX_SMEM = 48 << 10
MAX_VALUES = 64  # per thread, in registers


def why_not(config):
    """The limit that ``config`` exceeds, as text; "" if it is feasible."""
    threads = config["threads"] * config["slices"]
    if threads > 1024:
        return f"{threads:,} threads in a block (at most 1,024)"
    smem = 8 * threads * config["vec"]  # a double buffer
    if smem > MAX_SMEM:
        return f"{smem:,} bytes of shared memory for the slices' sums (at most {MAX_SMEM:,})"
    values = config["vec"] * config["loads"]
    return f"{values} values in a thread's registers (at most {MAX_VALUES})" if values > MAX_VALUES else ""
