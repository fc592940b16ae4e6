"""Limits of the kernel for average pooling."""

MAX_VALUES = 128  # of a thread's windows, whose loads are in flight together


def why_not(config, window):
    """The limit that ``config`` is beyond; empty where it is feasible. ``window``: elements of one."""
    values = config["outputs"] * window
    if config["outputs"] > 1 and values > MAX_VALUES:
        return f"{values} values in flight in a thread's registers, of {MAX_VALUES} at most"
    return ""
