"""Which versions an answer depended on, found without importing any of them."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from cutegen_lab import __version__

PACKAGES = ("torch", "nvidia-cutlass-dsl", "numpy")


@cache
def versions() -> dict[str, str]:
    """By distribution name; "missing" for what is not installed."""
    found = {"cutegen-lab": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
