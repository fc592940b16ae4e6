"""Replaces syntax that packages add to the DSL by patching it (as quack does at import) with plain DSL syntax.

``x[i, :]`` becomes ``x[i, None]``, and ``x[..., i]`` gets the missing ``None``. ``if const_expr(s) and d`` is split, so
that ``s`` is decided while tracing; without the patch the DSL would trace the body in any case. Both forms mean the
same without the patch, so every file may be rewritten.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator

from cutegen_lab.bundle.edits import Edit
from cutegen_lab.bundle.modules import Module

_COLON = re.compile(r"(?:\s|\)|\\|#[^\n]*\n)*:")  # a colon and the spaces, brackets and comments before it

Suite = Callable[[list[ast.stmt]], str]  # the edited text of some statements, with their indentation


def spelled(module: Module, node: ast.stmt, suite: Suite) -> Iterator[Edit]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.If) and isinstance(inner.test, ast.BoolOp):
            yield from _test(module, inner, inner.test, suite)
        elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Tuple):
            yield from _index(module, inner, inner.slice)


def _index(module: Module, node: ast.Subscript, index: ast.Tuple) -> Iterator[Edit]:
    for item in index.elts:
        if isinstance(item, ast.Slice) and item.lower is item.upper is item.step is None:
            start, end = module.span(item)
            yield Edit(start, end, "None")
        elif isinstance(item, ast.Constant) and item.value is Ellipsis and not isinstance(node.value, ast.Call):
            whole = ast.unparse(node.value)
            if whole.rsplit(".", 1)[-1] not in ("Tuple", "tuple", "Callable"):
                yield Edit(*module.span(item), f"*(None,) * (len({whole}.shape) - {len(index.elts) - 1})")


def _test(module: Module, node: ast.If, test: ast.BoolOp, suite: Suite) -> Iterator[Edit]:
    """Edits between the operands of the test, so that other edits of the operands and branches still apply."""
    static = []
    for value in test.values:
        if not _is_const_expr(value):
            break
        static.append(value)
    if not static:
        return
    assert all(isinstance(call, ast.Call) for call in static)
    word = "and" if isinstance(test.op, ast.And) else "or"
    spans = [module.span(call.args[0]) for call in static if isinstance(call, ast.Call)]
    function = module.text[slice(*module.span(static[0].func))] if isinstance(static[0], ast.Call) else ""
    start = module.span(node)[0] + (4 if module.text.startswith("elif", module.span(node)[0]) else 2)
    colon = _COLON.match(module.text, module.span(test)[1])
    assert colon is not None
    end = colon.end()
    rest = test.values[len(static) :]
    if rest and word == "and" and _is_elif(module, node.orelse):
        return  # a rewrite would duplicate its branches with another indentation
    yield Edit(start, spans[0][0], f" {function}(not ((" if rest and word == "and" else f" {function}((")
    for before, after in itertools.pairwise(spans):
        yield Edit(before[1], after[0], f") {word} (")
    closed = "))" + ")" * (word == "and")
    if not rest:
        yield Edit(spans[-1][1], end, ")):")
        return
    indent = " " * node.col_offset
    body = node.body if word == "or" else node.orelse
    branch = suite(body) if body else f"{indent}    pass"
    first, last = module.span(rest[0])[0], module.span(rest[-1])[1]
    yield Edit(spans[-1][1], first, f"{closed}:\n{branch}\n{indent}elif (")
    yield Edit(last, end, "):")


def _is_const_expr(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or node.keywords or len(node.args) != 1:
        return False
    return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) == "const_expr"


def _is_elif(module: Module, orelse: list[ast.stmt]) -> bool:
    if len(orelse) != 1 or not isinstance(orelse[0], ast.If):
        return False
    return module.text.startswith("elif", module.offset(orelse[0].lineno, orelse[0].col_offset))
