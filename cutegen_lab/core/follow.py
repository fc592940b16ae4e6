"""Finds where lines of a text are in a changed version of it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import lru_cache


def lines_of(text: str) -> list[str]:
    """Lines as Python counts them: a line ends only at ``\\n``, ``\\r`` or ``\\r\\n``."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def followed(before: str, after: str, first: int, last: int) -> tuple[int, int] | None:
    """First and last line (from 1) in ``after`` of lines ``first`` to ``last`` of ``before``; None if all of them are
    gone. Blank lines do not count."""
    if before == after:
        return first, last
    texts, same = lines_of(before), _same_lines(before, after)
    there = [same[line] for line in range(first, min(last, len(texts)) + 1) if line in same and texts[line - 1].strip()]
    return (there[0], there[-1]) if there else None


@lru_cache(maxsize=1024)  # a run's view is built again after each event
def _same_lines(before: str, after: str) -> Mapping[int, int]:
    old, new = lines_of(before), lines_of(after)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    same = {line: line for line in range(1, head + 1)}
    between = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    for block in between.get_matching_blocks():
        same |= {head + block.a + n + 1: head + block.b + n + 1 for n in range(block.size)}
    return same | {len(old) - n: len(new) - n for n in range(tail)}
