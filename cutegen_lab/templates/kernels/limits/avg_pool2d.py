"""Limits of average pooling."""

MAX_VALUES = 128  # maximum number of values in a thread's windows, which are all loaded before the first sum


def why_not(config, window):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. ``window``: number of elements of a window."""
    values = config["outputs"] * window
    if config["outputs"] > 1 and values > MAX_VALUES:
        return f"{values} values in flight in a thread's registers (at most {MAX_VALUES})"
    return ""
