"""What a recorded figure needs to say about the machine it comes from."""

from __future__ import annotations

import platform
import re
from datetime import UTC, datetime
from pathlib import Path

import torch

_DRIVER = Path("/proc/driver/nvidia/version")


def about(device: str) -> dict[str, str]:
    """Date, versions and ``device``, as results in ``benchmarks/results`` begin."""
    match = re.search(r"  (\d+\.[\d.]+)  ", _DRIVER.read_text()) if _DRIVER.exists() else None
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "python": platform.python_version(),
        "torch": torch.__version__, "device": device, "driver": match[1] if match else "unknown",
    }  # fmt: skip
