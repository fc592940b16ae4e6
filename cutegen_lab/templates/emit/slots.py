"""Replaces a list whose elements are assigned one by one with a variable for each element."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from cutegen_lab.templates.emit.displays import display, elements, index_of, list_of, mutated
from cutegen_lab.templates.emit.evaluate import UNKNOWN, evaluate
from cutegen_lab.templates.emit.expand import Names, assignment, one_of
from cutegen_lab.templates.emit.names import Quick, bindings, loads, within


def with_slots_as_names(function: cst.FunctionDef, module: cst.Module) -> cst.FunctionDef:
    """``xs = [None]; xs[0] = …`` as ``x = …``, if ``xs`` is only used as ``xs[0]`` and assigned in the block of the
    list. Returns ``function`` itself if there is no such list."""
    changeable = mutated(function)
    if not changeable:
        return function
    changed = function.visit(_Slots(function, changeable, Names(function, module)))
    assert isinstance(changed, cst.FunctionDef)
    return changed


class _Slots(Quick):
    """Replaces list elements that are only stored and read by index with variables."""

    def __init__(self, function: cst.FunctionDef, changeable: set[str], names: Names) -> None:
        super().__init__()
        self._function, self._mutated, self._names = function, changeable, names
        self._slots = dict[str, list[str]]()

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> bool:
        for name, count in _lists(node, self._mutated).items():
            if self._is_only_indexed(node, name, count):
                self._slots[name] = [self._names.vague(one_of(name)) for _ in range(count)]
        return True

    def _is_only_indexed(self, block: cst.IndentedBlock, name: str, count: int) -> bool:
        """Whether every use is an element with a known index, stored in the block before it is read."""
        used = [each for each in within(self._function) if isinstance(each, cst.Name) and each.value == name]
        indexed = [each for each in within(self._function) if _of(each, name)]
        known = [at for each in indexed if (at := index_of(each)) is not None and at < count]
        stored = [at for statement in block.body if (at := _stored(statement, name)) is not None]
        stores = [
            each for each in within(self._function) if isinstance(each, cst.AssignTarget) and _of(each.target, name)
        ]
        plain = bindings(self._function)[name] == 1 and len(known) == len(indexed) == len(used) - 1
        return plain and len(stored) == len(stores) and not _is_read_first(block.body, name)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        name = updated_node.value.value if isinstance(updated_node.value, cst.Name) else ""
        at = index_of(updated_node)
        return cst.Name(self._slots[name][at]) if name in self._slots and at is not None else updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        """Assigns the list's elements to their variables, except literals."""
        found = _list_of(original_node)
        if found is None or found[0] not in self._slots:
            return updated_node
        name, whole = found
        given = zip(self._slots[name], elements(whole), strict=True)
        lines = [assignment(cst.Name(own), value) for own, value in given if evaluate(value, {}) is UNKNOWN]
        if not lines:
            return updated_node.with_changes(body=[cst.Pass()])
        lines[0] = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel(lines)


def _lists(block: cst.IndentedBlock, changeable: set[str]) -> dict[str, int]:
    found = [_list_of(statement) for statement in block.body]
    return {each[0]: len(each[1].elements) for each in found if each is not None and each[0] in changeable}


def _list_of(statement: cst.CSTNode) -> tuple[str, cst.List] | None:
    """The name and the list of ``xs = [a, b]``."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.List() as value)]
        ):
            return (name, value) if display(value) is not None else None
    return None


def _of(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) and node.value.value == name


def _stored(statement: cst.CSTNode, name: str) -> int | None:
    """Index of the element that a statement assigns, if it assigns nothing else."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)])]):
            return index_of(target) if _of(target, name) else None
    return None


def _is_read_first(statements: Sequence[cst.BaseStatement], name: str) -> bool:
    """Whether an initial literal of the list is read."""
    known = set[int]()
    for statement in statements:
        found = _list_of(statement)
        if found is not None and found[0] == name:
            known = {at for at, value in enumerate(elements(found[1])) if evaluate(value, {}) is UNKNOWN}
            continue
        target = statement.body[0].targets[0].target if _stored(statement, name) is not None else None  # type: ignore[attr-defined]
        read = {index_of(each) for each in within(statement) if _of(each, name) and each is not target}
        if read - known:
            return True
        known |= {at} if (at := _stored(statement, name)) is not None else set()
    return False


def with_lists_whole(function: cst.FunctionDef) -> cst.FunctionDef:
    """``xs = [None]`` followed by ``xs += (y,)`` as one list."""
    changed = function.visit(_Whole())
    assert isinstance(changed, cst.FunctionDef)
    return changed


class _Whole(Quick):
    """Merges ``xs = […]`` and ``xs += (…)``."""

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = list[cst.BaseStatement]()
        for statement in updated_node.body:
            more = _added(statement)
            at = _begun(body, more[0]) if more is not None else None
            if more is not None and at is not None:
                first = body.pop(at)
                whole = list_of([*elements(cst.ensure_type(_list_in(first), cst.List)), *more[1]])
                line = assignment(cst.Name(more[0]), whole)
                statement = line.with_changes(leading_lines=first.leading_lines)  # type: ignore[attr-defined]
            body.append(statement)
        return updated_node.with_changes(body=body)


def _begun(body: Sequence[cst.BaseStatement], name: str) -> int | None:
    """Index of the last ``name = […]``, if no later statement uses ``name``, and the list has only literals or the
    assignment is the last statement; otherwise None."""
    for at in reversed(range(len(body))):
        found = _list_of(body[at])
        if found is not None and found[0] == name:
            literal = all(evaluate(each, {}) is not UNKNOWN for each in elements(found[1]))
            return at if literal or at == len(body) - 1 else None
        if loads(body[at])[name] or bindings(body[at])[name]:
            return None
    return None


def _list_in(statement: cst.CSTNode) -> cst.List | None:
    found = _list_of(statement)
    return None if found is None else found[1]


def _added(statement: cst.CSTNode) -> tuple[str, Sequence[cst.BaseExpression]] | None:
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.AugAssign(target=cst.Name(value=name), operator=cst.AddAssign(), value=value)]
        ):
            whole = display(value)
            return None if whole is None or loads(value)[name] else (name, elements(whole))
    return None
