"""Removes definitions that ``launch`` and the other entries do not need."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from cutegen_lab.templates.emit.names import bound_by, loads, names_of


def reachable(module: cst.Module, entries: Collection[str]) -> cst.Module:
    """The module without functions, classes, constants and imports that ``entries`` do not reach."""
    needed = _needed(module, entries)
    body = []
    for statement in module.body:
        kept = statement
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            if statement.name.value not in needed:
                continue
        elif isinstance(statement, cst.SimpleStatementLine):
            first = statement.body[0]
            if isinstance(first, cst.Assign) and names_of(first.targets[0].target):
                if not needed & set(names_of(first.targets[0].target)):
                    continue
            elif isinstance(first, cst.Import | cst.ImportFrom):
                lines = _imports(statement, first, needed)
                if lines is None:
                    continue
                kept = lines
        body.append(kept)
    return module.with_changes(body=body)


def _needed(module: cst.Module, entries: Collection[str]) -> set[str]:
    definitions: dict[str, list[cst.CSTNode]] = {}
    todo = [*entries]
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            definitions.setdefault(statement.name.value, []).append(statement)
        elif isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign):
            for name in names_of(statement.body[0].targets[0].target):
                definitions.setdefault(name, []).append(statement.body[0].value)
        elif not isinstance(statement, cst.SimpleStatementLine):
            todo += loads(statement)
    found = set[str]()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [used for node in definitions.get(name, ()) for used in loads(node)]
    return found


def _imports(
    line: cst.SimpleStatementLine, node: cst.Import | cst.ImportFrom, needed: set[str]
) -> cst.SimpleStatementLine | None:
    """The import with only its needed names; None if there are none."""
    if isinstance(node.names, cst.ImportStar):
        return line
    if isinstance(node, cst.ImportFrom) and isinstance(node.module, cst.Name) and node.module.value == "__future__":
        return line
    kept = [alias for alias in node.names if bound_by(alias) in needed]
    if len(kept) == len(node.names):
        return line
    if not kept:
        return None
    kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return line.with_changes(body=[node.with_changes(names=kept)])
