"""Final names for variables that inlining created."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed
from cutegen_lab.templates.emit.expand import base_of, is_made
from cutegen_lab.templates.emit.names import bindings, loads, names_of_module


def with_good_names(module: cst.Module) -> cst.Module:
    """``x__2`` as ``x`` if ``x`` is free or no longer used, else as ``x_2``."""
    body = [_renamed(s, module) if isinstance(s, cst.FunctionDef) else s for s in module.body]
    return module.with_changes(body=body)


def _renamed(function: cst.FunctionDef, module: cst.Module) -> cst.FunctionDef:
    found = [name for name in {**bindings(function)} if is_made(name)]
    for name in found:
        taken = {*bindings(function), *loads(function), *names_of_module(module)}
        wish, count = base_of(name), 2
        good = wish
        while good in taken and not _ends_before(function.body.body, good, name):
            good, count = f"{wish}_{count}", count + 1
        changed = function.visit(_Everywhere({name: cst.Name(good)}))
        function = cst.ensure_type(changed, cst.FunctionDef)
    return function


def _ends_before(body: Sequence[cst.CSTNode], old: str, new: str) -> bool:
    """Whether both are bound once, by statements of the function's top level, and ``old`` is last used before ``new``
    is bound."""
    places = [[at for at, each in enumerate(body) if bindings(each)[name]] for name in (old, new)]
    plain = all(
        len(at) == 1 and isinstance(body[at[0]], cst.SimpleStatementLine) and bindings(body[at[0]])[name] == 1
        for at, name in zip(places, (old, new), strict=True)
    )
    if not plain:
        return False
    used = [at for at, each in enumerate(body) if loads(each)[old]]
    return places[0][0] < places[1][0] and max(used, default=0) <= places[1][0]


class _Everywhere(Renamed):
    """Renames parameters too."""

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node
