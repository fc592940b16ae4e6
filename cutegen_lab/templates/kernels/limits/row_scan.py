"""Limits of the row scan."""

MAX_VALUES = 64  # per thread, in registers
SLOTS = 32  # partial results per step: each lane of a warp scans one


def why_not(config):
    """The limit that ``config`` exceeds, as text; "" if it is feasible."""
    threads = config["threads_per_row"] * config["rows_per_block"]
    if threads > 1024:
        return f"{threads:,} threads in a block (at most 1,024)"
    sums = config["threads_per_row"] // 32 * config["loads"]
    if sums > SLOTS:
        return f"{sums} partial results per step for a warp to scan (at most {SLOTS})"
    values = config["vec"] * config["loads"]
    return f"{values} values in a thread's registers (at most {MAX_VALUES})" if values > MAX_VALUES else ""
