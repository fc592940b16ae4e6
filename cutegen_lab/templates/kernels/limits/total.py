"""Limits of the kernels of a full reduction."""

MAX_VALUES = 64  # per thread, in registers


def why_not(config):
    """The limit that ``config`` exceeds, as text; "" if it is feasible."""
    values = config["vec"] * config["loads"]
    return f"{values} values in a thread's registers (at most {MAX_VALUES})" if values > MAX_VALUES else ""
