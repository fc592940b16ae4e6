"""cutegen-lab: from a PyTorch reference to a fast, proven CuTe kernel, one approved refinement at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """``%load_ext cutegen_lab``: registers the magics; imports neither torch nor cutlass."""
    from cutegen_lab.notebook.magics import register

    register(ipython)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where ``jupyter labextension develop`` finds the prebuilt extension (``npm run build`` makes it)."""
    return [{"src": "labextension", "dest": "cutegen-lab"}]
