"""Replaces parameters that are records (tuples) with a parameter for each field.

A kernel file passes records as tuples: ``share = start, stride`` in one function, ``start, stride = share`` at the top
of the function that receives it. They are unpacked before a module is observed, so that each field is observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import libcst as cst

from cutegen_lab.templates.emit.displays import elements, is_steady, tuple_of
from cutegen_lab.templates.emit.literals import ReadsReplaced
from cutegen_lab.templates.emit.names import (
    Quick,
    assignments,
    bindings,
    called,
    calls_in,
    dotted,
    functions,
    loads,
    names_of,
    pairs,
    parameters,
    top_assignments,
    within,
)
from cutegen_lab.templates.emit.parameters import ENTRIES, calls_of, is_kernel, is_plain, parameter_names
from cutegen_lab.templates.emit.signature import with_parameters

_Fields = tuple[str, ...]
_Names = Mapping[tuple[str, int], Sequence[str]]
"""Names of fields, by the record's name and number of fields."""
_Tuples = Mapping[str, cst.Tuple]
"""Tuples, by the names that stand for them."""


def with_records_open(module: cst.Module) -> cst.Module:
    """Rewrites ``f((x, y))`` with ``def f(record): a, b = record`` to ``f(x, y)`` with ``def f(a, b):``, if every call
    shows the fields. Returns ``module`` itself if no parameter is a record."""
    names = _field_names(module)
    while opened := _opened(module, names):
        known, body = functions(module), list[cst.CSTNode]()
        for statement in module.body:
            if isinstance(statement, cst.FunctionDef):
                if opened.keys() & called(statement):
                    calls = _Calls(opened, known, _local_tuples(statement))
                    statement = cst.ensure_type(statement.visit(calls), cst.FunctionDef)
                for name, fields in opened.get(statement.name.value, {}).items():
                    statement = _with_fields(statement, name, fields)
            body.append(statement)
        module = module.with_changes(body=body)
    return module


def _opened(module: cst.Module, names: _Names) -> dict[str, dict[str, _Fields]]:
    """The fields of the records to unpack, by function and parameter."""
    known, calls, whole = functions(module), calls_of(module), _used_whole(module)
    local = {
        id(each): tuples
        for function in known.values()
        if (tuples := _local_tuples(function)) is not None
        for each in calls_in(function)
    }
    constant = {*known, *parameters(known["launch"])} if "launch" in known else {*known}
    found = dict[str, dict[str, _Fields]]()
    for name, function in known.items():
        if name in ENTRIES or not is_plain(function) or name not in calls:
            continue
        given = [_tuple_arguments(function, call, local.get(id(call), {})) for call in calls[name]]
        for parameter in function.params.params:
            if (name, parameter.name.value) in whole:
                continue
            handed = [each.get(parameter.name.value) for each in given]
            fields = _fields(function, parameter, handed, names)
            if fields is not None and (not is_kernel(function) or _shows_a_value(handed, constant)):
                found.setdefault(name, {})[parameter.name.value] = fields
    return found


def _tuple_arguments(function: cst.FunctionDef, call: cst.Call, local: _Tuples) -> _Tuples:
    """Tuples that the call passes, by parameter."""
    given = parameter_names(parameters(function), call)
    if given is None or "" in given:
        return {}
    whole = {name: _tuple(argument.value, local) for name, argument in zip(given, call.args, strict=True)}
    return {name: value for name, value in whole.items() if value is not None}


def _tuple(value: cst.BaseExpression, local: _Tuples) -> cst.Tuple | None:
    """The tuple of two or more elements that ``value`` is or names, else None."""
    if isinstance(value, cst.Name):
        return local.get(value.value)
    plain = isinstance(value, cst.Tuple) and all(isinstance(each, cst.Element) for each in value.elements)
    return value if plain and len(value.elements) > 1 else None  # type: ignore[attr-defined, return-value]


@lru_cache(maxsize=1024)
def _local_tuples(function: cst.FunctionDef) -> _Tuples:
    """Names that a function binds once, to a tuple whose parts do not change afterwards."""
    bound, last, found = bindings(function.body), dict[str, int](), dict[str, tuple[int, cst.Tuple]]()
    for at, each in enumerate(within(function)):
        if isinstance(each, cst.AssignTarget | cst.AugAssign | cst.For | cst.CompFor):
            last |= dict.fromkeys(names_of(each.target), at)
        for name, value in pairs(each) if isinstance(each, cst.Assign) else ():
            whole = _tuple(value, {})
            if whole is not None and bound[name] == 1 and is_steady(whole):
                found[name] = at, whole
    return {name: whole for name, (at, whole) in found.items() if all(last.get(read, -1) < at for read in loads(whole))}


def _used_whole(module: cst.Module) -> set[tuple[str, str]]:
    """(function, parameter) pairs whose tuple is used other than by unpacking, there or in a function that it is passed
    to."""
    known, found = functions(module), set[tuple[str, str]]()
    handed = {name: _forwarded(function, known) for name, function in known.items()}
    while True:
        before = len(found)
        for name, function in known.items():
            read = loads(function.body)
            for parameter in parameters(function):
                on = [to for own, to in handed[name] if own == parameter]
                other = read[parameter] > len(on) + len(_unpackings(function, parameter))
                found |= {(name, parameter)} if other or found.intersection(on) else set()
        if len(found) == before:
            return found


def _forwarded(function: cst.FunctionDef, known: Mapping[str, cst.FunctionDef]) -> list[tuple[str, tuple[str, str]]]:
    """(argument name, (function, parameter)) of each argument that is a name."""
    found = list[tuple[str, tuple[str, str]]]()
    for call in calls_in(function.body):
        to = dotted(call.func)
        if to in known:
            given = parameter_names(parameters(known[to]), call) or []
            for name, argument in zip(given, call.args, strict=False):
                if isinstance(argument.value, cst.Name) and not argument.star:
                    found.append((argument.value.value, (to, name)))
    return found


def _field_names(module: cst.Module) -> dict[tuple[str, int], list[str]]:
    """Names that functions use for the fields of a record, by its name and number of fields; "" if a field has none."""
    found = dict[tuple[str, int], list[str]]()
    for function in functions(module).values():
        for assign in assignments(function):
            (target,) = assign.targets
            for name, fields in ((target.target, assign.value), (assign.value, target.target)):
                if isinstance(name, cst.Name) and isinstance(fields, cst.Tuple):
                    known = found.setdefault((name.value, len(fields.elements)), [""] * len(fields.elements))
                    own = [_name(each.value) for each in fields.elements]
                    known[:] = [before or after for before, after in zip(known, own, strict=True)]
    return found


def _name(node: cst.CSTNode) -> str:
    return node.value if isinstance(node, cst.Name) and node.value != "_" else ""


def _fields(
    function: cst.FunctionDef,
    parameter: cst.Param,
    given: Sequence[cst.Tuple | None],
    names: _Names,
) -> _Fields | None:
    """Field names of a parameter; None if it is no record."""
    name, whole = parameter.name.value, [each for each in given if each is not None]
    sizes = {len(each.elements) for each in whole}
    if len(whole) < len(given) or len(sizes) != 1 or bindings(function.body)[name] or parameter.default is not None:
        return None
    kind = "" if parameter.annotation is None else dotted(parameter.annotation.annotation)
    nested = all(isinstance(field, cst.Tuple) for each in whole for field in elements(each))
    if kind and not kind.endswith("Constexpr") and not (kind == "tuple" and nested):
        return None
    fields = [*names.get((name, *sizes), ())]  # type: ignore[arg-type]
    own = set[str]()
    for assign in _unpackings(function, name):
        target = assign.targets[0].target
        if not isinstance(target, cst.Tuple) or {len(target.elements)} != sizes:
            return None
        if not all(isinstance(each.value, cst.Name) for each in target.elements):
            return None
        fields = [_name(each.value) or field for each, field in zip(target.elements, fields, strict=True)]
        own |= {*names_of(target)}
    bound = bindings(function)
    free = all(bound[field] == (field in own) for field in fields)
    return tuple(fields) if fields and all(fields) and len({*fields}) == len(fields) and free else None


def _shows_a_value(given: Sequence[cst.Tuple | None], constant: set[str]) -> bool:
    """Whether the text shows a field's value: a literal, a tuple, a function, a parameter of the config."""
    fields = [field for each in given if each is not None for field in elements(each)]
    return any(not isinstance(field, cst.Name) or field.value in {*constant, "None"} for field in fields)


def _unpackings(function: cst.FunctionDef, name: str) -> list[cst.Assign]:
    """The assignments that unpack a parameter."""
    return [each for each in top_assignments(function) if isinstance(each.value, cst.Name) and each.value.value == name]


def _with_fields(function: cst.FunctionDef, name: str, fields: _Fields) -> cst.FunctionDef:
    unpackings = _unpackings(function, name)
    lines = [s for s in function.body.body if not (isinstance(s, cst.SimpleStatementLine) and s.body[0] in unpackings)]
    body = lines or [cst.parse_statement("pass")]
    read = ReadsReplaced({name: tuple_of(map(cst.Name, fields))})
    changed = function.body.with_changes(body=body).visit(read)
    kept = list[cst.Param]()
    for each in function.params.params:
        own = [each.with_changes(name=cst.Name(field)) for field in fields]
        kept += own if each.name.value == name else [each]
    return with_parameters(function.with_changes(body=changed), kept)


class _Calls(Quick):
    """Passes the fields in calls."""

    def __init__(
        self, opened: Mapping[str, Mapping[str, _Fields]], known: Mapping[str, cst.FunctionDef], local: _Tuples
    ) -> None:
        super().__init__()
        self._opened, self._known, self._local = opened, known, local

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        name = dotted(updated_node.func)
        if name not in self._opened:
            return updated_node
        args = list[cst.Arg]()
        names = parameter_names(parameters(self._known[name]), updated_node) or []
        for parameter, argument in zip(names, updated_node.args, strict=True):
            whole = _tuple(argument.value, self._local) if parameter in self._opened[name] else None
            if whole is None:
                args.append(argument)
            elif argument.keyword is None:
                args += [cst.Arg(field.deep_clone()) for field in elements(whole)]
            else:
                named = zip(self._opened[name][parameter], elements(whole), strict=True)
                args += [cst.Arg(field.deep_clone(), keyword=cst.Name(own)) for own, field in named]
        return updated_node.with_changes(args=args)
