"""Joins modules of this package into one text that runs without the package."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib.resources import files

from cutegen_lab.core.syntax import merged_imports, parse

_LEFT_OUT = ("__future__", "cutegen_lab")


def joined(modules: Sequence[str]) -> str:
    """The texts of ``modules`` (dotted names) below their merged imports, without module docstrings and imports from
    each other. They must not define the same name."""
    plain, chosen, bodies = set[str](), list[str](), list[str]()
    for name in modules:
        package, _, module = name.rpartition(".")
        text = (files(package) / f"{module}.py").read_text(encoding="utf-8")
        statements = parse(text).body
        first = next(i for i, each in enumerate(statements) if i and not isinstance(each, ast.Import | ast.ImportFrom))
        for each in statements[1:first]:
            if isinstance(each, ast.ImportFrom) and each.module and not each.module.startswith(_LEFT_OUT):
                chosen.append(ast.unparse(each))
            elif isinstance(each, ast.Import):
                plain.add(ast.unparse(each))
        start = statements[first]
        decorators: Sequence[ast.expr] = getattr(start, "decorator_list", ())
        line = min([start.lineno, *(each.lineno for each in decorators)])
        bodies.append("\n".join(text.splitlines()[line - 1 :]).strip())
    head = "\n".join(["from __future__ import annotations", "", *sorted([*merged_imports(chosen), *plain])])
    return "\n\n\n".join([head, *bodies]) + "\n"
