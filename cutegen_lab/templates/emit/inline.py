"""Replaces calls with the returned expression, for functions that folding reduced to a ``return``."""

from __future__ import annotations

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed, parenthesised
from cutegen_lab.templates.emit.names import Quick, bindings, functions, loads, names_of, parameters, within

_LONGEST = 60  # maximum length in characters, so that the rest of the line fits


def inlined(module: cst.Module, before: cst.Module) -> cst.Module:
    """``module`` with calls replaced if folding reduced the function to a ``return``. ``before``: the module before
    folding. Functions that were a ``return`` already stay, because their names are informative."""
    short = {name: _text(value) for name, value in _returned(before).items()}
    values = {name: value for name, value in _returned(module).items() if short.get(name) != _text(value)}
    changed = module.visit(_Inline(values, functions(module)))
    assert isinstance(changed, cst.Module)
    return changed


def _returned(module: cst.Module) -> dict[str, cst.BaseExpression]:
    """The expression of each function that is only a ``return`` and that the DSL does not compile."""
    found: dict[str, cst.BaseExpression] = {}
    for name, function in functions(module).items():
        body = [*function.body.body][1 if function.get_docstring() is not None else 0 :]
        only = body[0] if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) else None
        returned = only.body[0] if only is not None and len(only.body) == 1 else None
        if isinstance(returned, cst.Return) and returned.value is not None and not function.decorators:
            found[name] = returned.value
    return found


def _text(value: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(value)


class _Inline(Quick):
    """Replaces calls of functions in ``values``."""

    def __init__(self, values: dict[str, cst.BaseExpression], known: dict[str, cst.FunctionDef]) -> None:
        super().__init__()
        self._values, self._known = values, known
        self._local = set[str]()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._local = set(bindings(node))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """Inlines a call only if it is the whole value: inside another expression the line would become long."""
        value = updated_node.value
        return updated_node.with_changes(value=self._returned(value)) if isinstance(value, cst.Call) else updated_node

    def _returned(self, updated_node: cst.Call) -> cst.BaseExpression:
        name = updated_node.func.value if isinstance(updated_node.func, cst.Name) else ""
        if name not in self._values or name in self._local:
            return updated_node
        value, names = self._values[name], parameters(self._known[name])
        given = [argument.value for argument in updated_node.args if argument.keyword is None and not argument.star]
        if len(given) != len(updated_node.args) or len(given) != len(names) or not all(map(_is_plain, given)):
            return updated_node
        inner = _bound_within(value)
        captured = inner & {each.value for each in given if isinstance(each, cst.Name)}
        if captured or (set(loads(value)) - {*names} - inner) & self._local:
            return updated_node
        found = value.visit(Renamed(dict(zip(names, given, strict=True))))
        assert isinstance(found, cst.BaseExpression)
        if len(_text(found)) > _LONGEST:
            return updated_node
        return parenthesised(found) if not isinstance(found, cst.ListComp) else found


def _is_plain(argument: cst.BaseExpression) -> bool:
    """Whether evaluating ``argument`` twice, or never, makes no difference."""
    return isinstance(argument, cst.Name | cst.Integer)


def _bound_within(value: cst.BaseExpression) -> set[str]:
    """Names that comprehensions in an expression bind."""
    return {name for each in within(value) if isinstance(each, cst.CompFor) for name in names_of(each.target)}
