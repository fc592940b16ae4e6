"""Suggestions for misspelled words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question that names the most similar of ``known``; empty if none is similar. ``cutoff`` (0 to 1): least
    similarity, as in :func:`difflib.get_close_matches`."""
    near = difflib.get_close_matches(word, list(known), 1, cutoff)
    return f"Did you mean {near[0]!r}?" if near else ""
