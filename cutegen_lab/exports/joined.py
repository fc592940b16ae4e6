"""Modules of this package as one text that runs where it is not installed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib.resources import files

from cutegen_lab.core.syntax import parse


def joined(modules: Sequence[str]) -> str:
    """The texts of ``modules`` (dotted names), one below the other under their imports, without docstrings of modules
    and without imports from each other. They must not define the same name."""
    imports, bodies = dict[str, None](), list[str]()
    for name in modules:
        package, _, module = name.rpartition(".")
        text = (files(package) / f"{module}.py").read_text(encoding="utf-8")
        statements = parse(text).body
        first = next(i for i, each in enumerate(statements) if i and not isinstance(each, ast.Import | ast.ImportFrom))
        for each in statements[1:first]:
            if ast.unparse(each) != "from __future__ import annotations" and "cutegen_lab" not in ast.unparse(each):
                imports[ast.unparse(each)] = None
        start = statements[first]
        decorators: Sequence[ast.expr] = getattr(start, "decorator_list", ())
        line = min([start.lineno, *(each.lineno for each in decorators)])
        bodies.append("\n".join(text.splitlines()[line - 1 :]).strip())
    head = "\n".join(["from __future__ import annotations", "", *sorted(imports)])
    return "\n\n\n".join([head, *bodies]) + "\n"
