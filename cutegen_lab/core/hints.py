"""What was probably meant by a word that nothing is called."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The question that names the most similar of ``known``; empty where none is similar. ``cutoff`` (0 to 1) is the
    least similarity, as :func:`difflib.get_close_matches` has it."""
    near = difflib.get_close_matches(word, list(known), 1, cutoff)
    return f"Did you mean {near[0]!r}?" if near else ""
