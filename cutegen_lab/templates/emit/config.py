"""Replaces the parameters of ``launch`` with constants of the module, for one config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed
from cutegen_lab.templates.emit.evaluate import UNKNOWN, evaluate, literal
from cutegen_lab.templates.emit.names import Quick, bindings, functions, loads, names_of
from cutegen_lab.templates.emit.refusal import CannotSpecialise
from cutegen_lab.templates.emit.signature import with_parameters

_ENTRIES = ("constraints", "workspace")


def settings(module: cst.Module, config: Mapping[str, Any]) -> dict[str, Any]:
    """Value of every tunable parameter of ``launch``: from ``config``, else its default. Raises CannotSpecialise."""
    launch = functions(module).get("launch")
    if launch is None:
        raise CannotSpecialise("the module defines no top-level function launch")
    names = [parameter.name.value for parameter in launch.params.params]
    if "stream" not in names or launch.params.kwonly_params:
        raise CannotSpecialise("launch() must have its tunable parameters after stream")
    found = {}
    for parameter in launch.params.params[names.index("stream") + 1 :]:
        name = parameter.name.value
        default = UNKNOWN if parameter.default is None else evaluate(parameter.default, {})
        found[name] = config.get(name, default)
        if found[name] is UNKNOWN:
            raise CannotSpecialise(f"the default of launch()'s parameter {name} is not a literal")
    if unknown := sorted(set(config) - set(found)):
        raise CannotSpecialise(f"launch() has no parameter {', '.join(unknown)}")
    return found


def with_constants(module: cst.Module, values: Mapping[str, Any]) -> cst.Module:
    """``launch`` without its tunable parameters. Numbers other than 0 and 1 become module constants in
    capitals, in place of ``TUNABLE``; other values replace the parameter itself."""
    spelled = _spelled(module, values)
    constants = [
        cst.parse_statement(f"{expression.value} = {values[name]!r}")
        for name, expression in spelled.items()
        if isinstance(expression, cst.Name) and expression.value not in ("True", "False", "None")
    ]
    body: list[Any] = []
    for statement in module.body:
        if _assigned(statement) == "TUNABLE":
            continue
        if isinstance(statement, cst.FunctionDef) and statement.name.value == "launch":
            statement = _launch(statement, spelled)
        elif isinstance(statement, cst.FunctionDef) and statement.name.value in _ENTRIES:
            statement = _entry(statement, spelled)
        body.append(statement)
    at = _behind_imports(body)
    body[at:at] = constants
    return module.with_changes(body=body)


def spellings(module: cst.Module, values: Mapping[str, Any]) -> dict[str, str | None]:
    """What :func:`with_constants` writes for each parameter of ``launch``."""
    return {name: cst.Module([]).code_for_node(text) for name, text in _spelled(module, values).items()}


def _spelled(module: cst.Module, values: Mapping[str, Any]) -> dict[str, cst.BaseExpression]:
    taken = set(bindings(module)) | set(loads(module))
    return {name: _spelling(name, value, taken) for name, value in values.items()}


def with_constants_first(module: cst.Module) -> cst.Module:
    """Moves assignments of literals directly after the imports."""
    literals = [statement for statement in module.body if _is_literal(statement)]
    if not literals:
        return module
    body: list[Any] = [statement for statement in module.body if statement not in literals]
    at = _behind_imports(body)
    plain = [s.with_changes(leading_lines=[line for line in s.leading_lines if line.comment]) for s in literals]
    plain[0] = plain[0].with_changes(leading_lines=[cst.EmptyLine(), *plain[0].leading_lines])
    return module.with_changes(body=[*body[:at], *plain, *body[at:]])


def _behind_imports(body: Sequence[Any]) -> int:
    """Index of the first statement after the docstring and the imports."""
    kinds = cst.Import | cst.ImportFrom | cst.Expr
    found = [at for at, s in enumerate(body) if isinstance(s, cst.SimpleStatementLine) and isinstance(s.body[0], kinds)]
    return found[-1] + 1 if found else 0


def _spelling(name: str, value: Any, taken: set[str]) -> cst.BaseExpression:
    if isinstance(value, bool | str) or value in (0, 1):
        return literal(value)
    constant = name.upper()
    while constant in taken:
        constant = f"{constant}_"
    return cst.Name(constant)


def _assigned(statement: cst.CSTNode) -> str:
    """Name that a top-level statement assigns."""
    if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign):
        return "".join(names_of(statement.body[0].targets[0].target))
    return ""


def _is_literal(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or not _assigned(statement):
        return False
    return evaluate(cst.ensure_type(statement.body[0], cst.Assign).value, {}) is not UNKNOWN


def _launch(function: cst.FunctionDef, spelled: Mapping[str, cst.BaseExpression]) -> cst.FunctionDef:
    if again := sorted(set(spelled) & set(bindings(function.body))):
        raise CannotSpecialise(f"launch() assigns its parameter {', '.join(again)}")
    body = function.body.visit(Renamed(dict(spelled)))
    kept = [parameter for parameter in function.params.params if parameter.name.value not in spelled]
    return with_parameters(function.with_changes(body=body), kept)


def _entry(function: cst.FunctionDef, spelled: Mapping[str, cst.BaseExpression]) -> cst.FunctionDef:
    """``constraints`` or ``workspace`` with ``config`` values inserted."""
    names = [parameter.name.value for parameter in function.params.params]
    if "config" not in names or not isinstance(function.body, cst.IndentedBlock):
        return function
    changed = function.visit(_Lookups(spelled))
    assert isinstance(changed, cst.FunctionDef)
    if not loads(changed.body)["config"]:
        return changed
    entries = ", ".join(f'"{name}": {cst.Module([]).code_for_node(text)}' for name, text in spelled.items())
    return with_statements(changed, [f"config = {{{entries}}}"])


def with_statements(function: cst.FunctionDef, texts: Sequence[str]) -> cst.FunctionDef:
    """``function`` with the statements ``texts`` inserted after its docstring."""
    body = [*function.body.body]
    at = 1 if function.get_docstring() is not None else 0
    body[at:at] = [cst.parse_statement(text) for text in texts]
    return function.with_changes(body=function.body.with_changes(body=body))


class _Lookups(Quick):
    """Replaces ``config["name"]``."""

    def __init__(self, spelled: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._spelled = spelled

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        if isinstance(updated_node.value, cst.Name) and updated_node.value.value == "config":
            (element,) = updated_node.slice
            name = evaluate(element.slice.value, {}) if isinstance(element.slice, cst.Index) else UNKNOWN
            if isinstance(name, str) and name in self._spelled:
                return self._spelled[name].deep_clone()
        return updated_node
