"""Limits of the row reduction."""

import math

MAX_VALUES = 96  # values of a row per thread, in registers
MAX_LOADS = 64  # vector loads of a row in flight per thread; this value means: the thread's whole share
MAX_ROW = 1 << 24  # up to this length, indices along a row are exact in fp32
SHORT = 64  # rows up to this length may have fewer threads than FEWEST
FEWEST = 8


def width_of(vec, n, run, skewed):
    """Vector width, at most ``vec``. ``run``: number of adjacent values of a row (of ``n``) with one stride.
    ``skewed``: rows may begin and end inside a vector."""
    return vec if skewed and n % vec else math.gcd(run, vec)


def share_of(config, n, run, skewed):
    """Vectors of a row per thread."""
    width = width_of(config["vec"], n, run, skewed)
    return -(-n // (width * config["threads_per_row"] * config["cluster_n"]))


def why_not(config, n, run, skewed, twice):
    """The limit that ``config`` exceeds, or "". ``twice``: accept ``loads`` that mean the same as ``MAX_LOADS``."""
    per_row, loads, vec = config["threads_per_row"], config["loads"], width_of(config["vec"], n, run, skewed)
    threads, share = per_row * config["rows_per_block"], share_of(config, n, run, skewed)
    if n > MAX_ROW:
        return f"a row of {n:,} values (at most {MAX_ROW:,})"
    if threads % 32 or threads > 1024:
        return f"{threads:,} threads in a block (must be a multiple of 32, at most 1,024)"
    if config["cluster_n"] > per_row:
        return f"a cluster of {config['cluster_n']} blocks (at most threads_per_row: {per_row})"
    if per_row < FEWEST and n > SHORT:
        return f"{per_row} threads per row (at least {FEWEST} for rows longer than {SHORT})"
    if loads >= share and loads != MAX_LOADS and not twice:
        return f"{loads} loads in flight cover a thread's whole share of a row, {share}; use {MAX_LOADS} for that"
    values = vec * min(share, loads)
    return f"{values} values of a row in a thread's registers (at most {MAX_VALUES})" if values > MAX_VALUES else ""
