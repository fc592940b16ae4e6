"""Replaces tuples and lists with their elements, unrolls loops over a few elements, and inlines functions whose
arguments are such tuples.

Facts about a name hold until it is bound again, so names may be bound more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed
from cutegen_lab.templates.emit.displays import (
    Display,
    display,
    elements,
    is_steady,
    list_of,
    matched,
    mutated,
    reads_any,
    sequence,
    tuple_of,
)
from cutegen_lab.templates.emit.expand import (
    Body,
    Names,
    arguments,
    assignment,
    base_of,
    body_of,
    inlined_call,
    is_vague,
    iteration_of,
    one_of,
)
from cutegen_lab.templates.emit.names import (
    bindings,
    dotted,
    functions,
    loads,
    names_of,
    only_part,
    pairs,
    read_in,
    within,
)
from cutegen_lab.templates.emit.slots import with_lists_whole, with_slots_as_names
from cutegen_lab.templates.emit.unpacked import Known, Unpacked, targets_of

_MOST_ROUNDS = 8
_MOST_NAMES = 4  # maximum number of names for the elements of one list
_TENSOR = re.compile(r"[a-z]([A-Z]\w*)")  # gX, rX, sX
_SHORT, _SHORTEST = 6, 2  # maximum number of statements of functions inlined at every call (given functions; others)
_Node = TypeVar("_Node", bound=cst.CSTNode)


def with_displays_unpacked(module: cst.Module) -> cst.Module:
    """``module`` with tuples and lists replaced by their elements, loops unrolled and functions inlined;
    ``module`` itself if nothing changes."""
    known = functions(module)
    bodies = {name: body for name, function in known.items() if name != "launch" and (body := body_of(function))}
    uses = loads(module)
    taken = list[cst.CSTNode]()
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            whole = with_slots_as_names(with_lists_whole(statement), module)
            changed = _Walk(whole, module, bodies, uses).function()
            statement = statement if changed.deep_equals(statement) else changed
        taken.append(statement)
    same = all(a is b for a, b in zip(taken, module.body, strict=True))
    return module if same else module.with_changes(body=taken)


class _Walk:
    """Rewrites one function, statement by statement. ``known``: displays and functions by the names that stand for
    them."""

    def __init__(
        self, function: cst.FunctionDef, module: cst.Module, bodies: Mapping[str, Body], uses: Mapping[str, int]
    ) -> None:
        self._function, self._bodies, self._uses = function, bodies, uses
        self._compiled = bool(function.decorators)
        self._names = Names(function, module)
        self._functions = functions(module).keys()
        self._mutated = mutated(function)
        self._wishes = dict[str, str]()

    def function(self) -> cst.FunctionDef:
        body = self._function.body
        if not isinstance(body, cst.IndentedBlock):
            return self._function
        changed = self._block(body, {})
        wishes: Known = {name: cst.Name(wish) for name, wish in self._wishes.items()}
        return self._function.with_changes(body=changed.visit(Renamed(wishes)) if wishes else changed)

    def _block(self, block: cst.BaseSuite, known: Known) -> cst.BaseSuite:
        if not isinstance(block, cst.IndentedBlock):
            return block
        return block.with_changes(body=self._statements(block.body, known))

    def _statements(self, statements: Sequence[cst.BaseStatement], known: Known) -> list[cst.BaseStatement]:
        """Rewritten statements. Updates ``known`` in order."""
        found, todo = list[cst.BaseStatement](), [*statements]
        while todo:
            statement = todo.pop(0)
            instead = self._replacement(statement, known)
            if instead is None:
                found.append(self._statement(statement, known))
            else:
                todo = [*_with_comments_of(statement, instead), *todo]
                self._mutated |= {name for each in instead for name in mutated(each)}
        return found

    def _statement(self, statement: cst.BaseStatement, known: Known) -> cst.BaseStatement:
        match statement:
            case cst.SimpleStatementLine():
                changed = self._visited(statement, known)
                self._record_facts(changed, known)
                return changed
            case cst.If():
                test = self._visited(statement.test, known)
                body = self._block(statement.body, dict(known))
                other = statement.orelse
                if isinstance(other, cst.If):
                    other = cst.ensure_type(self._statement(other, dict(known)), cst.If)
                elif other is not None:
                    other = other.with_changes(body=self._block(other.body, dict(known)))
                statement = statement.with_changes(test=test, body=body, orelse=other)
            case cst.For():
                walked = self._visited(statement.iter, known)
                _forget(known, bindings(statement))
                statement = statement.with_changes(iter=walked, body=self._block(statement.body, dict(known)))
            case cst.With():
                statement = statement.with_changes(body=self._block(statement.body, dict(known)))
        _forget(known, bindings(statement))
        return statement

    def _visited(self, node: _Node, known: Known) -> _Node:
        visitor = Unpacked(known, self._functions)
        changed = node.visit(visitor)
        assert isinstance(changed, cst.CSTNode)
        return changed

    def _record_facts(self, line: cst.SimpleStatementLine, known: Known) -> None:
        """Updates ``known`` with the values that an assignment gives its names."""
        bound = bindings(line)
        _forget(known, bound)
        for small in line.body:
            for name, value in pairs(small) if isinstance(small, cst.Assign) else ():
                whole = display(value)
                shown = whole is not None and is_steady(whole) and name not in self._mutated
                if (shown or self._is_function(value)) and not reads_any(value, bound):
                    known[name] = value

    def _is_function(self, value: cst.BaseExpression) -> bool:
        return isinstance(value, cst.Name) and value.value in self._functions

    def _replacement(self, statement: cst.BaseStatement, known: Known) -> list[cst.BaseStatement] | None:
        """The statements that replace ``statement``, or None."""
        if isinstance(statement, cst.For):
            return self._unrolled(statement, known)
        only = only_part(statement)
        match only:
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=cst.Call() as call):
                found = self._called(call, target, known)
                return None if found is None else [*found[0], assignment(target, found[1] or cst.Name("None"))]
            case cst.AugAssign(value=cst.Call() as call):
                found = self._called(call, None, known)
                if found is not None and found[1] is not None:
                    return [*found[0], cst.SimpleStatementLine([only.with_changes(value=found[1])])]
            case cst.Return(value=cst.Call() as call):
                found = self._called(call, None, known)
                if found is not None and found[1] is not None:
                    return [*found[0], cst.SimpleStatementLine([cst.Return(found[1])])]
            case cst.Expr(value=cst.Call() as call):
                found = self._called(call, None, known)
                return None if found is None or found[1] is not None else found[0]
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                if isinstance(target, cst.Name):
                    self._wish(only.value, target.value)
                return self._split(target, only.value, known)
        return None

    def _split(
        self, target: cst.BaseAssignTargetExpression, value: cst.BaseExpression, known: Known
    ) -> list[cst.BaseStatement] | None:
        """Splits ``xs = [f()]`` into ``x = f()`` and ``xs = [x]``; also ``xs = [f(y) for y in ys]``. ``(x,) = (y,)``
        becomes ``x = y``."""
        value = self._visited(value, known)
        several = self._each(value, known)
        whole = several or display(value)
        if whole is None:
            return None
        if isinstance(target, cst.Tuple) and len(target.elements) == len(whole.elements) == 1:
            return [assignment(target.elements[0].value, elements(whole)[0])]  # type: ignore[arg-type]
        most = _MOST_NAMES if several is not None else 1
        if not isinstance(target, cst.Name) or not 0 < len(whole.elements) <= most or is_steady(whole):
            return None
        if target.value in self._mutated or not self._compiled:
            return None
        own = [*self._names_of(target.value, len(whole.elements), value, known)]
        put = tuple_of if isinstance(whole, cst.Tuple) else list_of
        named = zip(own, elements(whole), strict=True)
        return [*(assignment(cst.Name(n), each) for n, each in named), assignment(target, put(map(cst.Name, own)))]

    def _names_of(self, name: str, count: int, value: cst.BaseExpression, known: Known) -> Iterator[str]:
        """Names for the elements: ``rW`` if made from ``gW``."""
        name, walked = base_of(name), value.for_in.iter if isinstance(value, cst.ListComp) else value
        whole = sequence(walked, lambda each: self._shown(each, known)) if count > 1 else None
        for each in elements(whole) if whole is not None else [value] * count:
            tensor = _TENSOR.fullmatch(dotted(each))
            if tensor is not None and _TENSOR.fullmatch(name) is not None:
                yield self._names.made(f"{name[0]}{tensor[1]}")
            elif count == 1 and one_of(name) != name:
                yield self._names.made(one_of(name))
            else:
                yield self._names.vague(one_of(name))

    def _each(self, value: cst.BaseExpression, known: Known) -> cst.List | None:
        """The elements of a comprehension that computes something from each of several known names."""
        if not isinstance(value, cst.ListComp) or value.for_in.inner_for_in is not None or value.for_in.ifs:
            return None
        whole = sequence(value.for_in.iter, lambda each: self._shown(each, known))
        if whole is None or not isinstance(value.for_in.target, cst.Name):
            return None
        if not all(isinstance(each, cst.Name) for each in elements(whole)):
            return None
        found = [value.elt.visit(Renamed({value.for_in.target.value: each})) for each in elements(whole)]
        return list_of(each for each in found if isinstance(each, cst.BaseExpression))

    def _called(
        self, call: cst.Call, target: cst.BaseAssignTargetExpression | None, known: Known
    ) -> tuple[list[cst.BaseStatement], cst.BaseExpression | None] | None:
        name = dotted(call.func)
        name = dotted(known[name]) if name in known else name
        body = self._bodies.get(name)
        if body is None or name == self._function.name.value:
            return None
        call = self._visited(call, known)
        given = arguments(body.function, call)
        if given is None or (body.compiled != self._compiled and not body.is_plain):
            return None
        shown = [self._shown(value, known) for value in given.values()]
        records = any(each is not None and self._has_function(each) for each in shown)
        apart = any(each is not None for each in shown) or display(body.returned) is not None
        looked_up = bool(body.statements) and all(map(_names_a_display, body.statements))
        once = self._uses[name] == 1 and apart
        lines = all(isinstance(each, cst.SimpleStatementLine) for each in body.statements)
        most = _SHORT if records else _SHORTEST if apart and lines and not body.compiled else -1
        if not once and not looked_up and (len(body.statements) > most or _is_named_call(body)):
            return None
        found = inlined_call(body, given, target, self._names)
        for parameter, value in given.items() if found is not None else ():
            self._wish(value, parameter)
        return found

    def _wish(self, value: cst.BaseExpression, name: str) -> None:
        """Records the final name of a vague name: the parameter or variable to which it is assigned."""
        if isinstance(value, cst.Name) and is_vague(value.value) and not is_vague(name):
            self._wishes.setdefault(value.value, self._names.made(name))

    def _shown(self, value: cst.BaseExpression, known: Known) -> Display | None:
        return display(known.get(value.value, value) if isinstance(value, cst.Name) else value)

    def _has_function(self, node: cst.CSTNode) -> bool:
        return any(self._is_function(each) for each in within(node) if isinstance(each, cst.Name))

    def _unrolled(self, loop: cst.For, known: Known) -> list[cst.BaseStatement] | None:
        """The iterations of a loop over one element, or over records with functions."""
        walked = self._visited(loop.iter, known)
        whole = sequence(walked, lambda value: self._shown(value, known))
        if whole is None or loop.orelse or not isinstance(loop.body, cst.IndentedBlock):
            return None
        several = len(whole.elements) > 1
        if several and not (len(whole.elements) <= _MOST_ROUNDS and all(map(self._has_function, elements(whole)))):
            return None
        if any(isinstance(each, cst.Break | cst.Continue | cst.Return) for each in within(loop.body)):
            return None
        given = [matched(loop.target, each, lambda value: self._shown(value, known)) for each in elements(whole)]
        targets, bound = set(names_of(loop.target)), bindings(loop.body)
        outside = loads(self._function), loads(loop.body), bindings(self._function)
        only = [name for name in bound if outside[2][name] == bound[name] and outside[0][name] == outside[1][name]]
        if any(bound[name] or _read_outside(self._function.body, name) for name in targets):
            return None
        found = list[cst.BaseStatement]()
        for at, each in enumerate(given):
            if each is None:
                return None
            found += iteration_of(loop.body.body, each, only, self._names, at == 0)
        return found or [cst.parse_statement("pass")]


def _is_named_call(body: Body) -> bool:
    """Whether ``body`` is only one call, as in ``view``."""
    return not body.statements and isinstance(body.returned, cst.Call)


def _read_outside(node: cst.CSTNode, name: str) -> bool:
    """Whether ``name`` is read outside of loops and comprehensions over it."""
    if isinstance(node, cst.For) and name in names_of(node.target):
        return loads(node.iter)[name] > 0
    if isinstance(node, cst.ListComp | cst.GeneratorExp) and name in targets_of(node.for_in):
        return loads(node.for_in.iter)[name] > 0
    if isinstance(node, cst.SimpleStatementLine | cst.BaseExpression) and not loads(node)[name]:
        return False
    if isinstance(node, cst.Name):
        return node.value == name
    return any(_read_outside(each, name) for each in read_in(node))


def _names_a_display(statement: cst.CSTNode) -> bool:
    """Whether ``statement`` is like ``xs = (a, b)``."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value)]):
            return display(value) is not None and is_steady(value)
    return False


def _forget(known: Known, bound: Mapping[str, int]) -> None:
    for name in [name for name, value in known.items() if name in bound or reads_any(value, bound)]:
        del known[name]


def _with_comments_of(statement: cst.BaseStatement, instead: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """``instead`` with the comments of the statement that it replaces."""
    above = [*getattr(statement, "leading_lines", ())]
    behind = statement.trailing_whitespace if isinstance(statement, cst.SimpleStatementLine) else None
    if isinstance(statement, cst.For) and isinstance(statement.body, cst.IndentedBlock):
        comment = statement.body.header.comment
        above += [cst.EmptyLine(comment=comment)] if comment else []
    found = [*instead]
    if found and above:
        found[0] = found[0].with_changes(leading_lines=[*above, *getattr(found[0], "leading_lines", ())])
    if found and behind is not None and behind.comment and isinstance(found[-1], cst.SimpleStatementLine):
        found[-1] = found[-1].with_changes(trailing_whitespace=behind)
    return found
