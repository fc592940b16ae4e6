"""The statements that a call of a function, or a round of a loop, stands for, with names of their own."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed, parenthesised
from cutegen_lab.templates.emit.displays import is_steady
from cutegen_lab.templates.emit.names import (
    bindings,
    dotted,
    is_range,
    loads,
    names_of,
    names_of_module,
    only_part,
    parameters,
    parts,
    top_assignments,
    within,
)

_WIDE = 100
_MADE = re.compile(r"(__any)?__\d+$")
_VAGUE = re.compile(r"__any__\d+$")
_OPEN = cst.If | cst.IfExp | cst.BooleanOperation | cst.Comparison | cst.While | cst.With
"""What the DSL compiles to something else than Python does."""


class Names:
    """Names that a function has, and new ones for what is written into it: ``x``, or ``x__2`` until all are written
    (:mod:`~cutegen_lab.templates.emit.rename`)."""

    def __init__(self, function: cst.FunctionDef, module: cst.Module) -> None:
        self._taken = {*bindings(function), *loads(function), *names_of_module(module)}
        self.local = set(bindings(function))
        self.indices = [each for each in top_assignments(function) if _is_index(each)]
        """Where it asks for the number of its thread or block."""

    def fresh(self, wish: str) -> str:
        """``wish`` itself if it is free."""
        return self._new(base_of(wish), base_of(wish))

    def made(self, wish: str) -> str:
        return self._new(base_of(wish), f"{base_of(wish)}__1")

    def vague(self, wish: str) -> str:
        """One that gives way to any that says more."""
        return self._new(f"{base_of(wish)}__any", f"{base_of(wish)}__any__1")

    def _new(self, base: str, name: str) -> str:
        count = 2
        while name in self._taken:
            name, count = f"{base}__{count}", count + 1
        self._taken.add(name)
        self.local.add(name)
        return name


def base_of(name: str) -> str:
    return _MADE.sub("", name)


def one_of(name: str) -> str:
    """``x`` of ``xs``."""
    base = base_of(name)
    return base.removesuffix("s") if len(base) > 2 else base


def is_made(name: str) -> bool:
    return base_of(name) != name


def is_vague(name: str) -> bool:
    return _VAGUE.search(name) is not None


@dataclass(frozen=True)
class Body:
    """A function that a call may be replaced by: ``statements`` and then what it returns, if anything."""

    function: cst.FunctionDef
    statements: Sequence[cst.BaseStatement]
    returned: cst.BaseExpression | None
    compiled: bool
    """By the DSL."""

    @property
    def is_plain(self) -> bool:
        """Whether it is the same Python or compiled by the DSL."""
        code = [*within(self.function.body)]
        loops = any(isinstance(each, cst.For) and is_range(each.iter) for each in code)
        return not loops and not any(isinstance(each, _OPEN) for each in code)


def body_of(function: cst.FunctionDef) -> Body | None:
    """None where it cannot be written in the place of its calls."""
    of = function.params
    if of.star_arg is not cst.MaybeSentinel.DEFAULT or of.star_kwarg or of.kwonly_params or of.posonly_params:
        return None
    kinds = {dotted(decorator.decorator) for decorator in function.decorators}
    if not kinds <= {"cute.jit"} or not isinstance(function.body, cst.IndentedBlock):
        return None
    statements = [*function.body.body][1 if function.get_docstring() is not None else 0 :]
    last = statements[-1] if statements else None
    only = only_part(last)
    returned = only.value if isinstance(only, cst.Return) else None
    if isinstance(only, cst.Return):
        statements = statements[:-1]
    kinds_within = cst.Return | cst.Lambda | cst.FunctionDef | cst.ClassDef | cst.Global | cst.NamedExpr | cst.Yield
    if any(isinstance(each, kinds_within) for statement in statements for each in within(statement)):
        return None
    return Body(function, statements, returned, bool(kinds))


def arguments(function: cst.FunctionDef, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """What each parameter gets; None where the call does not show it."""
    names = parameters(function)
    found = {p.name.value: p.default for p in function.params.params if p.default is not None}
    for at, argument in enumerate(call.args):
        if argument.star or (argument.keyword is None and at >= len(names)):
            return None
        found[names[at] if argument.keyword is None else argument.keyword.value] = argument.value
    return found if found.keys() == {*names} else None


def called_at(
    body: Body, given: Mapping[str, cst.BaseExpression], target: cst.BaseAssignTargetExpression | None, names: Names
) -> tuple[list[cst.BaseStatement], cst.BaseExpression | None] | None:
    """The statements of a call and what it returns. ``target`` is assigned that. None where it would say another
    thing: a name of the module that is another one here."""
    function = body.function
    inner = _comprehended(function)
    known = [each for each in body.statements if _is_known(each, function, names)]
    free = set(loads(function.body)) - {*parameters(function)} - {*bindings(function.body)}
    rebound = +(bindings(function.body) - Counter(name for each in known for name in bindings(each)))
    if free & names.local:
        return None
    replaced, before = dict[str, cst.BaseExpression](), list[cst.BaseStatement]()
    passed, kept = _passed(body, given, target), _kept(body, given, target)
    for name, value in given.items():
        if name in passed or (is_steady(value) and not rebound[name]):
            replaced[name] = parenthesised(value) if isinstance(value, cst.UnaryOperation) else value
        else:
            own = names.fresh(name)
            before.append(_assigned(own, value))
            replaced[name] = cst.Name(own)
    captured = {name for value in given.values() for name in loads(value)} & inner
    for name in rebound:
        local = name in inner and name not in captured and rebound[name] <= _times(function, name)
        if name in kept:
            replaced[name] = cst.Name(kept[name])
        elif name not in replaced and name != "_" and not local:
            replaced[name] = cst.Name(names.fresh(name))
    renamed = [_renamed(each, replaced) for each in body.statements if each not in known]
    result = None if body.returned is None else body.returned.visit(Renamed(replaced))
    assert result is None or isinstance(result, cst.BaseExpression)
    statements = [*before, *renamed]
    return _with_comment(statements, _said(function)), result


def _passed(
    body: Body, given: Mapping[str, cst.BaseExpression], target: cst.BaseAssignTargetExpression | None
) -> set[str]:
    """Parameters whose last value is assigned to the name that was given for them: they are that name."""
    found = set[str]()
    for goal, value in _goals(body, target):
        own = given.get(value)
        once = [n for n, each in given.items() if loads(each)[goal]]
        if isinstance(own, cst.Name) and own.value == goal and once == [value]:
            found.add(value)
    return found


def _kept(
    body: Body, given: Mapping[str, cst.BaseExpression], target: cst.BaseAssignTargetExpression | None
) -> dict[str, str]:
    """Names of its own that are free to be those that they are assigned to."""
    goals, inside = _goals(body, target), {*loads(body.function), *bindings(body.function)}
    times = Counter(name for pair in goals for name in {*pair})
    read = {name for value in given.values() for name in loads(value)}
    return {
        value: goal
        for goal, value in goals
        if value not in given and goal not in read and (goal == value or goal not in inside) and times[goal] == 1
    }


def _goals(body: Body, target: cst.BaseAssignTargetExpression | None) -> list[tuple[str, str]]:
    """Names that are assigned names that the function returns."""
    pairs = parts(target, body.returned) if target is not None and body.returned is not None else []
    return [
        (goal.value, value.value)
        for goal, value in pairs
        if isinstance(goal, cst.Name) and isinstance(value, cst.Name) and goal.value != "_"
    ]


def _is_index(assign: cst.Assign) -> bool:
    """``tidx, _, _ = cute.arch.thread_idx()``."""
    return isinstance(assign.value, cst.Call) and dotted(assign.value.func) in (
        "cute.arch.thread_idx",
        "cute.arch.block_idx",
    )


def _is_known(statement: cst.BaseStatement, function: cst.FunctionDef, names: Names) -> bool:
    """Does it ask for a thread's or block's number that the caller has, under the same name, and bound once?"""
    only = only_part(statement)
    if not isinstance(only, cst.Assign) or not _is_index(only):
        return False
    once = all(bindings(function)[name] == 1 for name in names_of(only.targets[0].target) if name != "_")
    return once and any(only.deep_equals(each) for each in names.indices)


def _comprehended(node: cst.CSTNode) -> set[str]:
    return {name for each in within(node) if isinstance(each, cst.CompFor) for name in names_of(each.target)}


def _times(node: cst.CSTNode, name: str) -> int:
    """How often comprehensions bind it."""
    return sum(name in names_of(each.target) for each in within(node) if isinstance(each, cst.CompFor))


def _renamed(statement: cst.BaseStatement, replaced: Mapping[str, cst.BaseExpression]) -> cst.BaseStatement:
    changed = statement.visit(Renamed(dict(replaced)))
    assert isinstance(changed, cst.BaseStatement)
    return changed


def round_of(
    body: Sequence[cst.BaseStatement], given: Mapping[str, cst.BaseExpression], local: Sequence[str], names: Names,
    first: bool,
) -> list[cst.BaseStatement]:  # fmt: skip
    """A loop's statements for one value of its target. ``local``: names that only this loop has; the first round keeps
    them."""
    replaced, before = dict[str, cst.BaseExpression](), list[cst.BaseStatement]()
    for name, value in given.items():
        if is_steady(value):
            replaced[name] = value
        else:
            own = name if first else names.fresh(name)
            before.append(_assigned(own, value))
            replaced[name] = cst.Name(own)
    if not first:
        replaced |= {name: cst.Name(names.fresh(name)) for name in local}
    return [*before, *(_renamed(statement, replaced) for statement in body)]


def _assigned(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return assignment(cst.Name(name), value)


def assignment(target: cst.BaseAssignTargetExpression, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)])


def _said(function: cst.FunctionDef) -> str:
    """What its docstring says first that is not about its parameters."""
    text = (function.get_docstring() or "").partition("\n\n")[0]
    first = re.split(r"(?<=[.:;])\s", " ".join(text.split()))[0].rstrip(".:;")
    return "" if "``" in first or not first or len(first) > _WIDE else first


def _with_comment(statements: Sequence[cst.BaseStatement], said: str) -> list[cst.BaseStatement]:
    if not statements or not said:
        return [*statements]
    line = cst.EmptyLine(comment=cst.Comment(f"# {textwrap.shorten(said, _WIDE)}"))
    calls = (any(isinstance(each, cst.Call) for each in within(statement)) for statement in statements)
    at = next((at for at, found in enumerate(calls) if found), 0)
    first = statements[at].with_changes(leading_lines=[line, *getattr(statements[at], "leading_lines", ())])
    return [*statements[:at], first, *statements[at + 1 :]]
