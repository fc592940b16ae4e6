"""Sets of problems that have a name."""

from __future__ import annotations

from pathlib import Path

from cutegen_lab.core.errors import InputError

SGLANG, KERNELBENCH = Path("sglang"), Path("kernelbench")
_SETS = Path(__file__).parent / "sets"
_CLONE = "git clone https://github.com/ScalingIntelligence/KernelBench"


def folder_of(path: Path, kernelbench: Path | None = None) -> Path:
    """The folder of the set that ``path`` names: "sglang" (three kernels of SGLang, part of this package) or
    "kernelbench" (a checkout: ``kernelbench``, otherwise the folder ``KernelBench`` here); any other ``path`` itself.
    Raises InputError if there is no checkout."""
    if path == SGLANG:
        return _SETS / "sglang"
    return _checkout(kernelbench or Path("KernelBench")) if path == KERNELBENCH else path


def _checkout(place: Path) -> Path:
    """The folder with KernelBench's problems: in a checkout, it is its folder ``KernelBench``."""
    for folder in (place / "KernelBench", place):
        if (folder / "level1").is_dir():
            return folder
    raise InputError(
        f"no KernelBench in {place.resolve()}",
        f"Run `{_CLONE}` here, or set CUTEGEN_KERNELBENCH to the folder of a checkout.",
    )
