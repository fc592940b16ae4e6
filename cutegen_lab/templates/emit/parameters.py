"""Parameters that have one value at every call, or that nobody reads, leave a function and its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed
from cutegen_lab.templates.emit.config import with_statements
from cutegen_lab.templates.emit.evaluate import UNKNOWN, Constants, evaluate
from cutegen_lab.templates.emit.names import (
    Quick,
    bindings,
    dotted,
    functions,
    loads,
    pairs,
    parameters,
    top_assignments,
    within,
)
from cutegen_lab.templates.emit.signature import with_parameters

ENTRIES = frozenset({"launch", "workspace", "constraints"})
_CODE = cst.Module([])


@dataclass(frozen=True)
class _Gone:
    """A parameter that leaves. ``text`` is what it is everywhere; None where nobody reads it. ``bound``: it is assigned
    that at the top of the function, since it is long or assigned again."""

    text: str | None
    bound: bool = False
    observed: bool = False


def without_constant_parameters(
    module: cst.Module, constants: Constants, arguments: Mapping[tuple[str, str], Any], numbers: bool = True
) -> cst.Module:
    """``constants`` are the module's own; ``arguments`` the values that parameters had at every call of every
    workload, by function and name: without ``numbers``, only those are used that need no name. Functions that are
    handed around keep theirs."""
    calls, stands = _calls(module), _standing(module, constants)
    gone: dict[str, dict[str, _Gone]] = {}
    for name, function in functions(module).items():
        if name in ENTRIES or not _is_plain(function) or not calls.get(name):
            continue
        given = [_arguments(function, call, stands.get(id(call), {})) for call in calls[name]]
        if any(each is None for each in given):
            continue
        found = {
            parameter: _fate(function, parameter, [each.get(parameter) for each in given if each is not None],
                             constants, arguments.get((name, parameter), UNKNOWN))
            for parameter in parameters(function)
            if all(parameter in each for each in given if each is not None)
        }  # fmt: skip
        if not numbers:
            found = {p: f for p, f in found.items() if f is None or f.text is None or not f.observed or not f.bound}
        gone[name] = {parameter: fate for parameter, fate in found.items() if fate is not None}
    gone = {name: fates for name, fates in gone.items() if fates}
    if not gone:
        return module
    changed = module.visit(_Calls(functions(module), gone))
    assert isinstance(changed, cst.Module)
    body = [
        _without(node, gone[node.name.value]) if isinstance(node, cst.FunctionDef) and node.name.value in gone else node
        for node in changed.body
    ]
    return changed.with_changes(body=body)


def _calls(module: cst.Module) -> dict[str, list[cst.Call]]:
    """The calls of each top-level function; none of one that is also handed around."""
    found: dict[str, list[cst.Call]] = {}
    for node in within(module):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            found.setdefault(node.func.value, []).append(node)
    read = loads(module)
    return {name: calls for name, calls in found.items() if len(calls) == read[name]}


def _is_plain(function: cst.FunctionDef) -> bool:
    of = function.params
    starred = isinstance(of.star_arg, cst.Param | cst.ParamStar) or of.star_kwarg is not None
    return not (starred or of.kwonly_params or of.posonly_params) and isinstance(function.body, cst.IndentedBlock)


def _standing(module: cst.Module, constants: Constants) -> dict[int, dict[str, cst.BaseExpression]]:
    """Of each call in a function, the local names that only ever stand for a constant of the module."""
    found: dict[int, dict[str, cst.BaseExpression]] = {}
    for function in functions(module).values():
        bound = bindings(function)
        names: dict[str, cst.BaseExpression] = {
            name: value
            for assign in top_assignments(function)
            for name, value in pairs(assign)
            if bound[name] == 1 and isinstance(value, cst.Name) and value.value in constants
        }
        if names:
            found |= {id(each): names for each in within(function) if isinstance(each, cst.Call)}
    return found


def _arguments(
    function: cst.FunctionDef, call: cst.Call, stands: Mapping[str, cst.BaseExpression]
) -> dict[str, cst.BaseExpression] | None:
    """What each parameter gets; None where the call does not show it."""
    names = _filled(parameters(function), call)
    if names is None:
        return None
    found = {p.name.value: p.default for p in function.params.params if p.default is not None}
    if any(argument.star for argument in call.args) and (found or "" not in names):
        return None
    for name, argument in zip(names, call.args, strict=True):
        value = argument.value
        found[name] = stands.get(value.value, value) if isinstance(value, cst.Name) else value
    return found


def _filled(names: Sequence[str], call: cst.Call) -> list[str] | None:
    """The parameter that each argument fills; "" for ``*these``, which fill some that none of the others does. None
    where the call does not show it."""
    stars = [at for at, argument in enumerate(call.args) if argument.star]
    keywords = [argument.keyword for argument in call.args if argument.keyword is not None]
    if len(stars) > 1 or (stars and (keywords or call.args[stars[0]].star != "*")):
        return None
    if len(call.args) > len(names) + len(stars):
        return None
    if not stars:
        return [names[at] if a.keyword is None else a.keyword.value for at, a in enumerate(call.args)]
    after = len(call.args) - stars[0] - 1
    return [*names[: stars[0]], "", *names[len(names) - after :]]


def _fate(
    function: cst.FunctionDef, parameter: str, given: list[cst.BaseExpression | None], constants: Constants, seen: Any
) -> _Gone | None:
    if _is_kernel(function) and not _is_constexpr(function, parameter):
        return None  # it is a parameter of the machine code too
    read, assigned = loads(function.body)[parameter], bindings(function.body)[parameter] > 0
    if not read and not assigned:
        return _Gone(None)
    texts = {_text(each) for each in given if each is not None}
    value = evaluate(given[0], constants) if len(texts) == 1 and given[0] is not None else UNKNOWN
    if value is not UNKNOWN and all(_is_static(each, constants) for each in given if each is not None):
        (text,) = texts
        return _Gone(text, assigned or len(text) > 20 or (text.startswith("(") and read > 1))
    if seen is UNKNOWN:
        return None
    short = seen is None or isinstance(seen, bool | str) or seen in (0, 1)
    return _Gone(repr(seen), assigned or not short, observed=True)


def _is_kernel(function: cst.FunctionDef) -> bool:
    return any(dotted(decorator.decorator) == "cute.kernel" for decorator in function.decorators)


def _is_constexpr(function: cst.FunctionDef, name: str) -> bool:
    (parameter,) = (p for p in function.params.params if p.name.value == name)
    return parameter.annotation is not None and dotted(parameter.annotation.annotation).endswith("Constexpr")


def _is_static(node: cst.BaseExpression, constants: Constants) -> bool:
    """Does it name nothing but constants, and is it no long formula?"""
    names = {each.value for each in within(node) if isinstance(each, cst.Name)}
    return names <= {*constants, "True", "False", "None"}


def _text(node: cst.BaseExpression) -> str:
    return " ".join(_CODE.code_for_node(node).split())


def _without(function: cst.FunctionDef, gone: Mapping[str, _Gone]) -> cst.FunctionDef:
    inlined = {
        name: cst.parse_expression(fate.text) for name, fate in gone.items() if fate.text is not None and not fate.bound
    }
    bound = [f"{name} = {fate.text}" for name, fate in gone.items() if fate.bound]
    body = function.body.visit(Renamed(inlined))
    kept = [p for p in function.params.params if p.name.value not in gone]
    return with_parameters(with_statements(function.with_changes(body=body), bound), kept)


class _Calls(Quick):
    """Drops the arguments of parameters that are gone."""

    def __init__(self, known: Mapping[str, cst.FunctionDef], gone: Mapping[str, Mapping[str, _Gone]]) -> None:
        super().__init__()
        self._names = {name: parameters(function) for name, function in known.items()}
        self._gone = gone

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = updated_node.func.value if isinstance(updated_node.func, cst.Name) else ""
        if function not in self._gone:
            return updated_node
        names = _filled(self._names[function], updated_node) or []
        pairs = zip(names, updated_node.args, strict=True)
        kept = [argument for name, argument in pairs if name not in self._gone[function]]
        if kept and updated_node.args[-1] is not kept[-1]:
            kept[-1] = kept[-1].with_changes(
                comma=updated_node.args[-1].comma, whitespace_after_arg=updated_node.args[-1].whitespace_after_arg
            )
        return updated_node.with_changes(args=kept)
