"""Config of a text that the analyst edited."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from cutegen_lab.core.candidate import Candidate, Config, Proposal
from cutegen_lab.core.syntax import parse

ANALYST = "analyst"  # the provider of edited text


def edited(parent: Candidate, text: str, candidate_id: str) -> Candidate:
    """The candidate that runs ``text`` unchanged."""
    proposal = Proposal(
        source=text,
        title=f"{parent.id} edited by the analyst",
        reason="edited by the analyst",
        config=config_after_edit(parent, text),
    )
    return Candidate(candidate_id, parent.id, ANALYST, proposal)


def config_after_edit(parent: Candidate, text: str) -> Config:
    """The parent's config without the parameters whose value the edit decides.

    A value in the config overrides the default in the source. If the analyst changed that default or removed the
    parameter, the text decides; otherwise the edit would silently have no effect.
    """
    before, after = _launch_defaults(parent.source), _launch_defaults(text)
    if after is None:  # does not parse: the gate will say so with a line number
        return dict(parent.config)
    return {
        name: value
        for name, value in parent.config.items()
        if name in after and (before is None or before.get(name) == after[name])
    }


@lru_cache(maxsize=64)  # a view of a run asks again with each of its events
def _launch_defaults(source: str) -> Mapping[str, str] | None:
    """Parameters of ``launch`` with defaults as text ("" for none); None if the source does not parse or a default is
    nested too deeply for ``ast.unparse``."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "launch":
            positional = node.args.posonlyargs + node.args.args
            padding: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
            names = positional + node.args.kwonlyargs
            defaults = [*padding, *node.args.defaults, *node.args.kw_defaults]
            try:
                return {a.arg: ast.unparse(d) if d else "" for a, d in zip(names, defaults, strict=True)}
            except RecursionError:
                return None
    return {}
