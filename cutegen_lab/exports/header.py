"""Comments above an exported Python text. The hash of the text in these comments shows that cutegen may overwrite the
file."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.hashing import sha256

SOURCE = "# source sha256: "
"""Prefix of the comment with the hash of the text below the comments."""


def under(claims: Sequence[str], source: str, further: Sequence[str] = ()) -> str:
    """``source`` under ``claims`` as comments, its hash and ``further`` comments."""
    lines = [*(f"# {line}" for line in claims), f"{SOURCE}{sha256(source)}", *further]
    return "\n".join(lines) + "\n\n" + source
