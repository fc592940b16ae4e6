"""A run's tree of candidates as a list in reading order."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.views.model import CandidateView, RunView


@dataclass(frozen=True)
class TreeRow:
    """One candidate and its depth (0: a root)."""

    depth: int
    candidate: CandidateView


def candidate_tree(view: RunView) -> list[TreeRow]:
    """Depth first, siblings in order of creation. A candidate whose parent is not in the view is a root."""
    known = {c.id for c in view.candidates}
    children: dict[str | None, list[CandidateView]] = {}
    for candidate in view.candidates:
        parent = candidate.parent_id if candidate.parent_id in known and candidate.parent_id != candidate.id else None
        children.setdefault(parent, []).append(candidate)
    rows: list[TreeRow] = []
    stack = [(0, c) for c in reversed(children.get(None, []))]
    while stack:
        depth, candidate = stack.pop()
        rows.append(TreeRow(depth, candidate))
        stack += [(depth + 1, c) for c in reversed(children.get(candidate.id, []))]
    return rows
