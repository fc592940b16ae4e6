"""Lays out a function's parameters."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

_WIDE = 120


def with_parameters(function: cst.FunctionDef, kept: Sequence[cst.Param]) -> cst.FunctionDef:
    """``function`` with only the parameters ``kept``: on the ``def`` line if they fit, else on one line below it, else
    one on each line."""
    plain = [parameter.with_changes(comma=cst.MaybeSentinel.DEFAULT) for parameter in kept]
    empty = cst.Module([])
    texts = [" ".join(empty.code_for_node(parameter).split()) for parameter in plain]
    line = f"def {function.name.value}({', '.join(texts)}):"
    if len(line) > _WIDE:
        below = [f"    {', '.join(texts)}"]
        below = below if len(below[0]) <= _WIDE else [f"    {text}," for text in texts]
        line = "\n".join([f"def {function.name.value}(", *below, "):"])
    parsed = cst.parse_statement(f"{line}\n    pass\n")
    assert isinstance(parsed, cst.FunctionDef)
    return function.with_changes(params=parsed.params, whitespace_before_params=parsed.whitespace_before_params)
