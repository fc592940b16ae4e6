"""Lays out a function's parameters."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

_WIDE = 120


def with_parameters(function: cst.FunctionDef, kept: Sequence[cst.Param]) -> cst.FunctionDef:
    """``function`` with only the parameters ``kept``: on the ``def`` line if they fit, else on the fewest lines below
    it."""
    plain = [parameter.with_changes(comma=cst.MaybeSentinel.DEFAULT) for parameter in kept]
    empty = cst.Module([])
    texts = [" ".join(empty.code_for_node(parameter).split()) for parameter in plain]
    line = f"def {function.name.value}({', '.join(texts)}):"
    if len(line) > _WIDE:
        below = [""]
        for text in texts:
            fits = not below[-1] or len(below[-1]) + len(text) + 6 <= _WIDE
            below = [*below[:-1], f"{below[-1]} {text},"] if fits else [*below, f" {text},"]
        if len(below) == 1:
            below[0] = below[0].removesuffix(",")
        line = "\n".join([f"def {function.name.value}(", *(f"   {row}" for row in below), "):"])
    parsed = cst.parse_statement(f"{line}\n    pass\n")
    assert isinstance(parsed, cst.FunctionDef)
    return function.with_changes(params=parsed.params, whitespace_before_params=parsed.whitespace_before_params)
