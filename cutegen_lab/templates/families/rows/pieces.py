"""Device functions for families whose modules are still put together from texts."""

from cutegen_lab.templates.emit.bundle import kernel_file


def _texts(file: str, *names: str) -> str:
    return "\n\n\n".join(kernel_file(file).definitions[name] for name in names)


ROW_REDUCE = _texts("device.row_reduce", "row_reduce", "values_of")
PAIRWISE = _texts("device.row_reduce", "pairwise")
WITHIN = _texts("device.row_reduce", "within")
APART = _texts("device.moments", "apart", "centre_of")
FETCH = _texts("device.row_io", "LOAD", "fetch")
PUT = _texts("device.row_io", "put")


def rescale(fast: bool) -> str:
    """``fast``: by the hardware's exponential."""
    return f"FAST = {fast}\n\n\n{_texts('device.online_softmax', 'finite', 'rescale')}"
