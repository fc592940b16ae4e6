"""cutegen-lab: from a PyTorch reference to a fast, proven CuTe kernel, one approved refinement at a time."""

__version__ = "0.1.0"


def load_ipython_extension(ipython) -> None:  # pragma: no cover - exercised by the notebooks
    """``%load_ext cutegen_lab``: registers the magics; imports neither torch nor cutlass."""
    from cutegen_lab.notebook.magics import register

    register(ipython)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where ``jupyter labextension develop`` finds the prebuilt extension (``npm run build`` makes it)."""
    return [{"src": "labextension", "dest": "cutegen-lab"}]
