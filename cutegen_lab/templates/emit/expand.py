"""Inlines functions and unrolls loops: the statements of a call or of one iteration, with renamed local variables."""

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
"""Nodes that the DSL compiles differently from how Python executes them."""


class Names:
    """Names in a function, and new ones for statements that are inlined into it: ``x``, or ``x__2`` until inlining is
    finished (:mod:`~cutegen_lab.templates.emit.rename`)."""

    def __init__(self, function: cst.FunctionDef, module: cst.Module) -> None:
        self._taken = {*bindings(function), *loads(function), *names_of_module(module)}
        self.local = set(bindings(function))
        self.indices = [each for each in top_assignments(function) if _is_index(each)]
        """Assignments of the thread index or block index."""

    def fresh(self, wish: str) -> str:
        """``wish`` itself if it is free, else a temporary name."""
        return self._new(base_of(wish), base_of(wish))

    def made(self, wish: str) -> str:
        """A name that is finally renamed to ``wish`` if possible."""
        return self._new(base_of(wish), f"{base_of(wish)}__1")

    def vague(self, wish: str) -> str:
        """A temporary name that any more specific name replaces."""
        return self._new(f"{base_of(wish)}__any", f"{base_of(wish)}__any__1")

    def _new(self, base: str, name: str) -> str:
        count = 2
        while name in self._taken:
            name, count = f"{base}__{count}", count + 1
        self._taken.add(name)
        self.local.add(name)
        return name


def base_of(name: str) -> str:
    """``x`` for the temporary names ``x__2`` and ``x__any__2``."""
    return _MADE.sub("", name)


def one_of(name: str) -> str:
    """Name for one element of ``name``: ``x`` for ``xs``."""
    base = base_of(name)
    return base.removesuffix("s") if len(base) > 2 else base


def is_made(name: str) -> bool:
    """Whether inlining made the name."""
    return base_of(name) != name


def is_vague(name: str) -> bool:
    """Whether a more specific name should replace it."""
    return _VAGUE.search(name) is not None


@dataclass(frozen=True)
class Body:
    """A function that can be inlined: its ``statements``, and the expression that it returns, if any."""

    function: cst.FunctionDef
    statements: Sequence[cst.BaseStatement]
    returned: cst.BaseExpression | None
    compiled: bool
    """Whether the DSL compiles it."""

    @property
    def is_plain(self) -> bool:
        """Whether Python and the DSL execute the function alike: it has no branches and no loops over ranges."""
        code = [*within(self.function.body)]
        loops = any(isinstance(each, cst.For) and is_range(each.iter) for each in code)
        return not loops and not any(isinstance(each, _OPEN) for each in code)


def body_of(function: cst.FunctionDef) -> Body | None:
    """``function`` as a :class:`Body`; None if it cannot be inlined."""
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
    """The argument of each parameter; None if the call does not show all of them."""
    names = parameters(function)
    found = {p.name.value: p.default for p in function.params.params if p.default is not None}
    for at, argument in enumerate(call.args):
        if argument.star or (argument.keyword is None and at >= len(names)):
            return None
        found[names[at] if argument.keyword is None else argument.keyword.value] = argument.value
    return found if found.keys() == {*names} else None


def inlined_call(
    body: Body, given: Mapping[str, cst.BaseExpression], target: cst.BaseAssignTargetExpression | None, names: Names
) -> tuple[list[cst.BaseStatement], cst.BaseExpression | None] | None:
    """The inlined statements of a call, and its result, which the caller assigns to ``target``. None if a global name
    of the function is a local name of the caller."""
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
        local = name in inner and name not in captured and rebound[name] <= _comprehensions_binding(function, name)
        if name in kept:
            replaced[name] = cst.Name(kept[name])
        elif name not in replaced and name != "_" and not local:
            replaced[name] = cst.Name(names.fresh(name))
    renamed = [_renamed(each, replaced) for each in body.statements if each not in known]
    result = None if body.returned is None else body.returned.visit(Renamed(replaced))
    assert result is None or isinstance(result, cst.BaseExpression)
    statements = [*before, *renamed]
    return _with_comment(statements, _summary(function)), result


def _passed(
    body: Body, given: Mapping[str, cst.BaseExpression], target: cst.BaseAssignTargetExpression | None
) -> set[str]:
    """Parameters that are updated in place: the caller assigns their last value to the variable that it passes."""
    found = set[str]()
    for goal, value in _assigned_results(body, target):
        own = given.get(value)
        once = [n for n, each in given.items() if loads(each)[goal]]
        if isinstance(own, cst.Name) and own.value == goal and once == [value]:
            found.add(value)
    return found


def _kept(
    body: Body, given: Mapping[str, cst.BaseExpression], target: cst.BaseAssignTargetExpression | None
) -> dict[str, str]:
    """Local names that can become the names to which the caller assigns them."""
    goals, inside = _assigned_results(body, target), {*loads(body.function), *bindings(body.function)}
    times = Counter(name for pair in goals for name in {*pair})
    read = {name for value in given.values() for name in loads(value)}
    return {
        value: goal
        for goal, value in goals
        if value not in given and goal not in read and (goal == value or goal not in inside) and times[goal] == 1
    }


def _assigned_results(body: Body, target: cst.BaseAssignTargetExpression | None) -> list[tuple[str, str]]:
    """(name in ``target``, name that the function returns) for each returned name."""
    pairs = parts(target, body.returned) if target is not None and body.returned is not None else []
    return [
        (goal.value, value.value)
        for goal, value in pairs
        if isinstance(goal, cst.Name) and isinstance(value, cst.Name) and goal.value != "_"
    ]


def _is_index(assign: cst.Assign) -> bool:
    """Whether ``assign`` is like ``tidx, _, _ = cute.arch.thread_idx()``."""
    return isinstance(assign.value, cst.Call) and dotted(assign.value.func) in (
        "cute.arch.thread_idx",
        "cute.arch.block_idx",
    )


def _is_known(statement: cst.BaseStatement, function: cst.FunctionDef, names: Names) -> bool:
    """Whether ``statement`` assigns a thread or block index that the caller has under the same name, bound once."""
    only = only_part(statement)
    if not isinstance(only, cst.Assign) or not _is_index(only):
        return False
    once = all(bindings(function)[name] == 1 for name in names_of(only.targets[0].target) if name != "_")
    return once and any(only.deep_equals(each) for each in names.indices)


def _comprehended(node: cst.CSTNode) -> set[str]:
    return {name for each in within(node) if isinstance(each, cst.CompFor) for name in names_of(each.target)}


def _comprehensions_binding(node: cst.CSTNode, name: str) -> int:
    """How many comprehensions bind ``name``."""
    return sum(name in names_of(each.target) for each in within(node) if isinstance(each, cst.CompFor))


def _renamed(statement: cst.BaseStatement, replaced: Mapping[str, cst.BaseExpression]) -> cst.BaseStatement:
    changed = statement.visit(Renamed(dict(replaced)))
    assert isinstance(changed, cst.BaseStatement)
    return changed


def iteration_of(
    body: Sequence[cst.BaseStatement], given: Mapping[str, cst.BaseExpression], local: Sequence[str], names: Names,
    first: bool,
) -> list[cst.BaseStatement]:  # fmt: skip
    """The statements of one loop iteration. ``given``: values of the loop's targets. ``local``: names that only this
    loop uses; the first iteration keeps them."""
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


def _summary(function: cst.FunctionDef) -> str:
    """The first clause of its docstring; empty if it is long or contains quoted code."""
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
