"""quack's kernels (Dao-AILab/quack, ``pip install quack-kernels``) for the tensors of :mod:`memory_bound`.

Each file is a candidate: it is read, not imported.
"""

from pathlib import Path

QUACK = "quack"


def kernel(name: str) -> str:
    """Source of the candidate that calls quack's kernel ``name``."""
    return Path(__file__).with_name(f"{name}.py").read_text()
