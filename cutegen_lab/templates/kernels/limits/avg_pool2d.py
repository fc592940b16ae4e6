"""Limits of average pooling."""

MAX_VALUES = 128  # values of a thread's windows, all loaded before the first sum


def why_not(config, window):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. ``window``: its number of elements."""
    values = config["outputs"] * window
    if config["outputs"] > 1 and values > MAX_VALUES:
        return f"{values} values in flight in a thread's registers, of {MAX_VALUES} at most"
    return ""
