"""Removes parameters that are unused or have the same value at every call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed
from cutegen_lab.templates.emit.config import with_statements
from cutegen_lab.templates.emit.displays import is_steady
from cutegen_lab.templates.emit.evaluate import UNKNOWN, Constants, evaluate
from cutegen_lab.templates.emit.expand import is_made
from cutegen_lab.templates.emit.names import (
    Quick,
    bindings,
    calls_in,
    dotted,
    functions,
    loads,
    names_of_module,
    pairs,
    parameters,
    top_assignments,
    within,
)
from cutegen_lab.templates.emit.signature import with_parameters

ENTRIES = frozenset({"launch", "workspace", "constraints"})
_CODE = cst.Module([])


@dataclass(frozen=True)
class _Dropped:
    """A parameter to remove. ``text``: its value at every call; None if it is unused. ``bound``: the value is assigned
    at the top of the function, because it is long or reassigned. ``observed``: the value was observed and is not in any
    caller's text."""

    text: str | None
    bound: bool = False
    observed: bool = False


def without_constant_parameters(
    module: cst.Module, constants: Constants, arguments: Mapping[tuple[str, str], Any], numbers: bool = True
) -> tuple[cst.Module, dict[str, dict[str, str | None]]]:
    """(``module`` without unused and constant parameters, the removed parameters by function with the texts of their
    values; None: unused).

    ``constants``: the module's, by name. ``arguments``: the value that a parameter had at every call of every
    workload, by function and name. Without ``numbers``, a parameter stays if its value was only observed and would
    need a name. Functions that are used as values keep their parameters.
    """
    uses = _Uses(module, constants)
    dropped = {
        name: found
        for name, function in functions(module).items()
        if (found := _all_dropped(name, function, uses, arguments, numbers))
    }
    if not dropped:
        return module, {}
    calls = _Calls(functions(module), dropped)
    changed = [node.visit(calls) if dropped.keys() & loads(node).keys() else node for node in module.body]
    body = [
        _without(node, dropped.get(node.name.value, {})) if isinstance(node, cst.FunctionDef) else node
        for node in changed
    ]
    texts = {name: {each: fate.text for each, fate in fates.items()} for name, fates in dropped.items()}
    return module.with_changes(body=body), texts


@dataclass(frozen=True)
class _Given:
    """An argument of a call, and the values of local names there."""

    value: cst.BaseExpression
    names: Mapping[str, cst.BaseExpression]
    bound: Collection[str] = ()
    """Names that the calling function binds."""

    def is_function(self, name: str, uses: _Uses) -> bool:
        """Whether the argument is the module's function ``name``."""
        own = isinstance(self.value, cst.Name) and self.value.value == name
        return own and name in uses.functions and name not in self.bound

    def of(self, value: cst.BaseExpression) -> _Given:
        return _Given(value, self.names)

    def resolved(self) -> cst.BaseExpression:
        """The argument; if it is a name with a known value, this value."""
        return self.names.get(self.value.value, self.value) if isinstance(self.value, cst.Name) else self.value


class _Uses:
    """Calls of functions in a module. ``constants``: names of the module with their values."""

    def __init__(self, module: cst.Module, constants: Constants) -> None:
        self.constants = constants
        self.functions = functions(module).keys()
        self.steady = _steady_names(module) | constants.keys()
        self._calls, self._aliases = calls_of(module), _aliases(module, self.steady)
        self._bound = {
            id(each): bindings(function).keys()
            for function in functions(module).values()
            for each in within(function)
            if isinstance(each, cst.Call)
        }

    def arguments(self, function: cst.FunctionDef) -> list[dict[str, _Given]]:
        """The arguments by parameter, for each call; empty if a call does not show them."""
        calls = self._calls.get(function.name.value, [])
        found = [
            _arguments(function, call, self._aliases.get(id(call), {}), self._bound.get(id(call), ())) for call in calls
        ]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else []


def _all_dropped(
    name: str, function: cst.FunctionDef, uses: _Uses, arguments: Mapping[tuple[str, str], Any], numbers: bool
) -> dict[str, _Dropped]:
    """Parameters of ``function`` to remove."""
    given = uses.arguments(function)
    if name in ENTRIES or not is_plain(function) or not given:
        return {}
    found: dict[str, _Dropped] = {}
    for parameter in parameters(function):
        if all(parameter in each for each in given):
            seen = arguments.get((name, parameter), UNKNOWN)
            dropped = _dropped(function, parameter, [each[parameter] for each in given], uses, seen)
            if dropped is not None and (numbers or not (dropped.observed and dropped.bound)):
                found[parameter] = dropped
    return found | (_repeated(function, given, found) if numbers else {})


def _repeated(
    function: cst.FunctionDef, given: Sequence[Mapping[str, _Given]], dropped: Collection[str]
) -> dict[str, _Dropped]:
    """Parameters to which every call passes the same variable as to another parameter."""
    first, found = dict[tuple[str, ...], str](), dict[str, _Dropped]()
    constant = [p for p in parameters(function) if not is_kernel(function) or is_constexpr(function, p)]
    for parameter in sorted(constant, key=is_made):
        values = [each[parameter].value if parameter in each else None for each in given]
        names = tuple(value.value for value in values if isinstance(value, cst.Name))
        if parameter in dropped or len(names) < len(given) or bindings(function.body)[parameter]:
            continue
        if first.setdefault(names, parameter) != parameter:
            found[parameter] = _Dropped(first[names])
    return found


def calls_of(module: cst.Module) -> dict[str, list[cst.Call]]:
    """Calls of each top-level function; none for a function that is also used as a value."""
    found: dict[str, list[cst.Call]] = {}
    for call in (call for statement in module.body for call in calls_in(statement)):
        if isinstance(call.func, cst.Name):
            found.setdefault(call.func.value, []).append(call)
    read = loads(module)
    return {name: calls for name, calls in found.items() if len(calls) == read[name]}


def is_plain(function: cst.FunctionDef) -> bool:
    """Whether all parameters are positional or keyword, without ``*args`` and ``**kwargs``."""
    of = function.params
    starred = isinstance(of.star_arg, cst.Param | cst.ParamStar) or of.star_kwarg is not None
    return not (starred or of.kwonly_params or of.posonly_params) and isinstance(function.body, cst.IndentedBlock)


def _steady_names(module: cst.Module) -> set[str]:
    """Names that only the module's top level binds."""
    local = {
        name for function in functions(module).values() for name in bindings(function.params) | bindings(function.body)
    }
    return names_of_module(module) - local


def _aliases(module: cst.Module, steady: Collection[str]) -> dict[int, dict[str, cst.BaseExpression]]:
    """For each call in a function (by id): local names that are aliases of constants or tuples, with their values."""
    found: dict[int, dict[str, cst.BaseExpression]] = {}
    for function in functions(module).values():
        bound = bindings(function)
        names: dict[str, cst.BaseExpression] = {
            name: value
            for assign in top_assignments(function)
            for name, value in pairs(assign)
            if bound[name] == 1
            and not isinstance(value, cst.List)  # lists may be modified
            and (isinstance(value, cst.Tuple) or _is_static(value, steady))
        }
        if names:
            found |= {id(each): names for each in calls_in(function)}
    return found


def _arguments(
    function: cst.FunctionDef, call: cst.Call, aliases: Mapping[str, cst.BaseExpression], bound: Collection[str]
) -> dict[str, _Given] | None:
    """The argument of each parameter; None if the call does not show them."""
    names = parameter_names(parameters(function), call)
    if names is None:
        return None
    found = {p.name.value: _Given(p.default, {}) for p in function.params.params if p.default is not None}
    if any(argument.star for argument in call.args) and (found or "" not in names):
        return None
    for name, argument in zip(names, call.args, strict=True):
        found[name] = _Given(argument.value, aliases, bound)
    return found


def parameter_names(names: Sequence[str], call: cst.Call) -> list[str] | None:
    """Parameter of each argument; "" for ``*args``, which fill the remaining ones. None if the call does not show
    this."""
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


def _dropped(
    function: cst.FunctionDef, parameter: str, given: Sequence[_Given], uses: _Uses, seen: Any
) -> _Dropped | None:
    """How to remove the parameter, whose arguments at all calls are ``given``; None if it must stay."""
    empty = all(isinstance(value := each.resolved(), cst.Tuple) and not value.elements for each in given)
    if is_kernel(function) and not is_constexpr(function, parameter) and not empty:
        return None  # a parameter of a kernel is part of the machine code
    read, assigned = loads(function.body)[parameter], bindings(function.body)[parameter] > 0
    if not read and not assigned:
        return _Dropped(None)
    if not assigned and all(each.is_function(parameter, uses) for each in given):
        return _Dropped(parameter)
    (text, *others) = {_written(each, seen, uses) for each in given}
    if text is None or others:
        text = None if seen is UNKNOWN else repr(seen)
    if text is None:
        return None
    constant = all(_is_static(each.resolved(), uses.steady) for each in given)
    long = assigned or len(text) > 20 or (text.startswith("(") and read > 1)
    if constant:
        return _Dropped(text, long)
    short = seen is None or isinstance(seen, bool | str) or seen in (0, 1)
    return _Dropped(text, long or not (short or text.isidentifier()), observed=True)


def _written(given: _Given, seen: Any, uses: _Uses) -> str | None:
    """Text of an argument with the observed value ``seen``: as in the call if that names constants, else a literal."""
    value = given.resolved()
    known = evaluate(value, uses.constants)
    if known is not UNKNOWN and (seen is UNKNOWN or known == seen) and _is_static(value, uses.constants):
        return _text(value)
    if seen is UNKNOWN:
        return _text(value) if known is UNKNOWN and is_steady(value) and _is_static(value, uses.steady) else None
    if not isinstance(value, cst.Tuple) or not isinstance(seen, tuple) or len(seen) != len(value.elements):
        return repr(seen)
    if not seen or any(isinstance(each, cst.StarredElement) for each in value.elements):
        return repr(seen)
    parts = [_written(given.of(each.value), part, uses) for each, part in zip(value.elements, seen, strict=True)]
    return f"({', '.join(map(str, parts))}{',' if len(parts) == 1 else ''})"


def is_kernel(function: cst.FunctionDef) -> bool:
    """Whether ``function`` has the decorator ``@cute.kernel``."""
    return any(dotted(decorator.decorator) == "cute.kernel" for decorator in function.decorators)


def is_constexpr(function: cst.FunctionDef, name: str) -> bool:
    (parameter,) = (p for p in function.params.params if p.name.value == name)
    return parameter.annotation is not None and dotted(parameter.annotation.annotation).endswith("Constexpr")


def _is_static(node: cst.BaseExpression, steady: Collection[str]) -> bool:
    """Whether ``node`` only refers to names of the module that never change."""
    return loads(node).keys() <= {*steady, "True", "False", "None"}


def _text(node: cst.BaseExpression) -> str:
    return " ".join(_CODE.code_for_node(node).split())


def _without(function: cst.FunctionDef, dropped: Mapping[str, _Dropped]) -> cst.FunctionDef:
    if not dropped:
        return function
    inlined = {
        name: cst.parse_expression(fate.text)
        for name, fate in dropped.items()
        if fate.text is not None and not fate.bound
    }
    bound = [f"{name} = {fate.text}" for name, fate in dropped.items() if fate.bound]
    body = function.body.visit(Renamed(inlined))
    kept = [p for p in function.params.params if p.name.value not in dropped]
    return with_parameters(with_statements(function.with_changes(body=body), bound), kept)


class _Calls(Quick):
    """Removes the arguments of removed parameters."""

    def __init__(self, known: Mapping[str, cst.FunctionDef], dropped: Mapping[str, Mapping[str, _Dropped]]) -> None:
        super().__init__()
        self._names = {name: parameters(function) for name, function in known.items()}
        self._gone = dropped

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = updated_node.func.value if isinstance(updated_node.func, cst.Name) else ""
        if function not in self._gone:
            return updated_node
        names = parameter_names(self._names[function], updated_node) or []
        pairs = zip(names, updated_node.args, strict=True)
        kept = [argument for name, argument in pairs if name not in self._gone[function]]
        if kept and updated_node.args[-1] is not kept[-1]:
            kept[-1] = kept[-1].with_changes(
                comma=updated_node.args[-1].comma, whitespace_after_arg=updated_node.args[-1].whitespace_after_arg
            )
        return updated_node.with_changes(args=kept)
