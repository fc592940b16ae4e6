"""Limits of the kernels that reduce everything."""

MAX_VALUES = 64  # of a thread, in registers


def why_not(config):
    """The limit that ``config`` is beyond; empty where it is feasible."""
    values = config["vec"] * config["loads"]
    return f"{values} values in a thread's registers, of {MAX_VALUES} at most" if values > MAX_VALUES else ""
