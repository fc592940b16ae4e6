"""Replaces parameters that are tuples of one value, or of a few tensors, with their elements."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from cutegen_lab.templates.emit.displays import display, elements, tuple_of
from cutegen_lab.templates.emit.expand import Names, one_of
from cutegen_lab.templates.emit.literals import ReadsReplaced
from cutegen_lab.templates.emit.names import (
    Quick,
    bindings,
    dotted,
    functions,
    loads,
    parameters,
    top_assignments,
    within,
)
from cutegen_lab.templates.emit.names import pairs as assigned
from cutegen_lab.templates.emit.parameters import ENTRIES, calls_of, is_plain, parameter_names
from cutegen_lab.templates.emit.signature import with_parameters

_MOST = 2  # maximum number of tensors in a tuple that is replaced


def with_short_tuples_open(module: cst.Module) -> cst.Module:
    """Rewrites ``f((x,))`` with ``def f(xs: tuple)`` to ``f(x)``, if every call shows a tuple of one value or of two
    tensors. Returns ``module`` itself if there is no such tuple."""
    calls, tensors = calls_of(module), _given_tensors(module)
    opened = dict[str, dict[str, list[cst.Param]]]()
    for name, function in functions(module).items():
        if (
            name not in ENTRIES
            and is_plain(function)
            and (found := _opened(function, calls.get(name, []), tensors, module))
        ):
            opened[name] = found
    if not opened:
        return module
    visitor = _Calls(opened, functions(module))
    body = []
    for statement in module.body:
        changed = statement.visit(visitor) if opened.keys() & loads(statement).keys() else statement
        if isinstance(changed, cst.FunctionDef) and changed.name.value in opened:
            changed = _with_opened(changed, opened[changed.name.value])
        body.append(changed)
    return module.with_changes(body=body)


def _opened(
    function: cst.FunctionDef, calls: list[cst.Call], tensors: set[int], module: cst.Module
) -> dict[str, list[cst.Param]]:
    """The parameters that replace a parameter, by its name."""
    names, found = parameters(function), dict[str, list[cst.Param]]()
    names_in = Names(function, module)
    given = [parameter_names(names, call) for call in calls]
    for parameter in function.params.params:
        name = parameter.name.value
        at = [names_.index(name) if names_ is not None and name in names_ else -1 for names_ in given]
        if not calls or -1 in at or bindings(function.body)[name] or parameter.default is not None:
            continue
        args = [call.args[i] for call, i in zip(calls, at, strict=True)]
        values = [display(each.value) for each in args if not each.star and each.keyword is None]
        whole = [elements(each) for each in values if isinstance(each, cst.Tuple)]
        sizes, tensor = {len(each) for each in whole}, all(id(one) in tensors for each in whole for one in each)
        most = _MOST if tensor and parameter.annotation is not None else 1
        if len(whole) < len(calls) or len(sizes) != 1 or not 1 <= min(sizes) <= most:
            continue
        alike = [{dotted(one) for one in each} for each in zip(*whole, strict=True)]
        wishes = [min(each) if len(each) == 1 and min(each).isidentifier() else one_of(name) for each in alike]
        annotation = _annotation(parameter, tensor)
        own = [cst.Name(names_in.made(wish)) for wish in wishes]
        found[name] = [cst.Param(each, annotation=annotation, star="") for each in own]
    return found


def _annotation(parameter: cst.Param, tensor: bool) -> cst.Annotation | None:
    """The annotation of an element: the parameter's; instead of ``tuple``, ``cute.Tensor`` for tensors, else none."""
    if parameter.annotation is None or dotted(parameter.annotation.annotation) != "tuple":
        return parameter.annotation
    return cst.Annotation(cst.parse_expression("cute.Tensor")) if tensor else None


def _given_tensors(module: cst.Module) -> set[int]:
    """Ids of reads of tensors: annotated parameters, and results of ``make_tensor`` and ``view``."""
    found = set[int]()
    for function in functions(module).values():
        typed = [p for p in function.params.params if p.annotation is not None]
        tensors = {p.name.value for p in typed if dotted(p.annotation.annotation) == "cute.Tensor"}  # type: ignore[union-attr]
        made = [pair for assign in top_assignments(function) for pair in assigned(assign)]
        tensors |= {n for n, v in made if isinstance(v, cst.Call) and dotted(v.func) in ("cute.make_tensor", "view")}
        found |= {id(each) for each in within(function) if isinstance(each, cst.Name) and each.value in tensors}
    return found


def _with_opened(function: cst.FunctionDef, opened: Mapping[str, list[cst.Param]]) -> cst.FunctionDef:
    names: dict[str, cst.BaseExpression] = {name: tuple_of(p.name for p in each) for name, each in opened.items()}
    body = function.body.visit(ReadsReplaced(names))
    kept = [each for parameter in function.params.params for each in opened.get(parameter.name.value, [parameter])]
    return with_parameters(function.with_changes(body=body), kept)


class _Calls(Quick):
    """Passes the elements of tuples in calls."""

    def __init__(
        self, opened: Mapping[str, Mapping[str, list[cst.Param]]], known: Mapping[str, cst.FunctionDef]
    ) -> None:
        super().__init__()
        self._opened, self._names = opened, {name: parameters(function) for name, function in known.items()}

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = updated_node.func.value if isinstance(updated_node.func, cst.Name) else ""
        if function not in self._opened:
            return updated_node
        names = parameter_names(self._names[function], updated_node) or []
        args = list[cst.Arg]()
        for name, argument in zip(names, updated_node.args, strict=True):
            whole = display(argument.value) if name in self._opened[function] else None
            given = [argument.value] if whole is None else elements(whole)
            args += [argument.with_changes(value=each, comma=cst.MaybeSentinel.DEFAULT) for each in given[:-1]]
            args.append(argument.with_changes(value=given[-1]))
        return updated_node.with_changes(args=args)
