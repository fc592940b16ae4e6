"""Parameters that are tuples of one, as what they hold."""

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


def with_tuples_of_one_open(module: cst.Module) -> cst.Module:
    """``f((x,))`` with ``def f(xs: tuple)`` as ``f(x)``, where every call shows that it is one. Itself where none
    does."""
    calls, tensors = calls_of(module), _given_tensors(module)
    opened = dict[str, dict[str, cst.Param]]()
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
) -> dict[str, cst.Param]:
    """What takes the place of a parameter."""
    names, found = parameters(function), dict[str, cst.Param]()
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
        if len(whole) < len(calls) or any(len(each) != 1 for each in whole):
            continue
        alike = {dotted(each[0]) for each in whole}
        wish = min(alike) if len(alike) == 1 and min(alike).isidentifier() else one_of(name)
        annotation = _annotation(parameter, all(id(each[0]) in tensors for each in whole))
        found[name] = cst.Param(cst.Name(names_in.made(wish)), annotation=annotation, star="")
    return found


def _annotation(parameter: cst.Param, tensor: bool) -> cst.Annotation | None:
    """That of a tensor for a tuple of one; others stay."""
    if parameter.annotation is None or dotted(parameter.annotation.annotation) != "tuple":
        return parameter.annotation
    return cst.Annotation(cst.parse_expression("cute.Tensor")) if tensor else None


def _given_tensors(module: cst.Module) -> set[int]:
    """The arguments of calls that are names of tensors: parameters that say so, and what ``make_tensor`` gives."""
    found = set[int]()
    for function in functions(module).values():
        typed = [p for p in function.params.params if p.annotation is not None]
        tensors = {p.name.value for p in typed if dotted(p.annotation.annotation) == "cute.Tensor"}  # type: ignore[union-attr]
        made = [pair for assign in top_assignments(function) for pair in assigned(assign)]
        tensors |= {n for n, v in made if isinstance(v, cst.Call) and dotted(v.func) == "cute.make_tensor"}
        found |= {id(each) for each in within(function) if isinstance(each, cst.Name) and each.value in tensors}
    return found


def _with_opened(function: cst.FunctionDef, opened: Mapping[str, cst.Param]) -> cst.FunctionDef:
    names: dict[str, cst.BaseExpression] = {name: tuple_of([each.name]) for name, each in opened.items()}
    body = function.body.visit(ReadsReplaced(names))
    kept = [opened.get(parameter.name.value, parameter) for parameter in function.params.params]
    return with_parameters(function.with_changes(body=body), kept)


class _Calls(Quick):
    def __init__(self, opened: Mapping[str, Mapping[str, cst.Param]], known: Mapping[str, cst.FunctionDef]) -> None:
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
            args.append(argument if whole is None else argument.with_changes(value=elements(whole)[0]))
        return updated_node.with_changes(args=args)
