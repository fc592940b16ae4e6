"""Versions that a result depends on, found without importing the packages."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from cutegen_lab import __version__

PACKAGES = ("torch", "nvidia-cutlass-dsl", "numpy")


@cache
def versions() -> dict[str, str]:
    """Version by distribution name; "missing" if not installed."""
    found = {"cutegen-lab": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
