"""Warnings about mistakes that the compiler reports badly or not at all, found in the text. They never decide a
verdict.

Rules follow mistakes of language models with nvidia-cutlass-dsl 4.8.1. A rule is silent if it is not certain; compiler
and judge decide.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress

from cutegen_lab.compile.hints import ALIASES
from cutegen_lab.compile.names import dotted_names
from cutegen_lab.compile.regions import born_in_region, is_constant_control, mentions
from cutegen_lab.core.syntax import Nodes, dotted, parse
from cutegen_lab.core.verdict import Diagnostic

MissingNames = Callable[[list[str]], dict[str, list[str]]]
MAX_THREADS = 1024
_NO_METHOD = {"astype", "sum", "mean"}
_MAX_NAMES, _MAX_UNKNOWN_NAMES = 500, 20  # maximum number of DSL names looked up in the cage, and reported


def lint(source: str, missing_names: MissingNames | None = None) -> list[Diagnostic]:
    """Findings in line order. ``missing_names`` (from the cage) adds names that the installed DSL lacks."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return []  # the gate reports the syntax error
    found = list(_unknown_names(tree, missing_names)) if missing_names else []
    nodes = Nodes(tree)
    functions = list(_dsl_functions(nodes.within(tree)))
    with suppress(RecursionError):  # hundreds of elif exceed the recursion limit
        found += born_in_region(nodes, functions)
    for function in functions:
        found += _dynamic_exits(function, nodes)
        known = _known_numbers(function)
        for node in nodes.within(function):
            if isinstance(node, ast.Subscript):
                found += _subscript(node)
            elif isinstance(node, ast.Assign):
                found += _chosen_index(node)
            elif isinstance(node, ast.Call):
                found += _call(node, known)
    return sorted(set(found), key=lambda d: (d.line, d.code))


def warning(code: str, line: int, message: str, suggestion: str) -> Diagnostic:
    """A diagnostic of severity "warning"."""
    return Diagnostic("warning", code, message, line, suggestion=suggestion)


def _dsl_functions(nodes: Iterable[ast.AST]) -> Iterator[ast.FunctionDef]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            decorators = [dotted(d) for d in node.decorator_list]
            if any(d.endswith(("cute.jit", "cute.kernel")) or d in ("jit", "kernel") for d in decorators):
                yield node


def _unknown_names(tree: ast.Module, missing_names: MissingNames) -> Iterator[Diagnostic]:
    used = dotted_names(tree)
    missing = missing_names(sorted(used)[:_MAX_NAMES])
    for name, choices in [(n, c) for n, c in missing.items() if n in used][:_MAX_UNKNOWN_NAMES]:
        last = name.rsplit(".", 1)[-1]
        close = difflib.get_close_matches(last, choices, n=3, cutoff=0.6)
        advice = ALIASES.get(last) or (f"Did you mean {', '.join(close)}?" if close else "")
        yield warning("L01-unknown-name", used[name], f"the installed DSL has no {name}", advice)


def _dynamic_exits(function: ast.FunctionDef, nodes: Nodes) -> Iterator[Diagnostic]:
    until = 0  # end of the dynamic region that contains the node
    for place, node in nodes.placed(function):
        if isinstance(node, (ast.For, ast.If, ast.While)) and not is_constant_control(node):
            until = max(until, nodes.end(node))
        elif isinstance(node, (ast.Return, ast.Break, ast.Continue)) and place < until:
            what = type(node).__name__.lower()
            yield warning("L02-early-exit", node.lineno, f"{what} inside a dynamic if or for",
                          "Guard the rest with an if instead.")  # fmt: skip


def _subscript(node: ast.Subscript) -> Iterator[Diagnostic]:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if isinstance(part, ast.Slice):
            yield warning(
                "L03-slice", node.lineno, "a Python slice as index", "Use None for a whole mode: x[row, None]."
            )
        elif isinstance(part, ast.Constant) and part.value is Ellipsis:
            yield warning("L03-slice", node.lineno, "... as index", "Write one None per mode: x[row, None].")
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and len(parts) > 1:
            yield warning("L04-negative-index", node.lineno, "a negative index reads out of bounds silently",
                          "Count from the front: x[row, n - 1].")  # fmt: skip
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
            yield warning("L05-float-index", node.lineno, "/ makes a float index", "Use //.")


def _chosen_index(node: ast.Assign) -> Iterator[Diagnostic]:
    """Finds an index that is a conditional expression: the DSL's rewriting fails for it with "expected some sort of
    expr", at the launch instead of at this line."""
    for index in (t.slice for t in node.targets if isinstance(t, ast.Subscript)):
        if any(isinstance(part, ast.IfExp) for part in ast.walk(index)):
            yield warning("L14-chosen-index", index.lineno, "a conditional expression in the index that is assigned to",
                          "Choose the index on a line before: i = a if c else b; x[i] = v.")  # fmt: skip


def _call(node: ast.Call, known: Set[str]) -> Iterator[Diagnostic]:
    """Findings of a call. ``known``: names of numbers that are known while a function is traced."""
    name, line = dotted(node.func), node.lineno
    keywords = {k.arg: k.value for k in node.keywords}
    if name == "sum":
        yield warning("L06-sum", line, "Python's sum() over a vector hangs the compiler",
                      "Use v.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0).")  # fmt: skip
    elif name.endswith(".launch"):
        lacking = [k for k in ("grid", "block", "stream") if k not in keywords and None not in keywords]
        if lacking:
            yield warning("L07-launch", line, f"launch without {', '.join(lacking)} (block defaults to one thread)",
                          "Write .launch(grid=..., block=..., stream=stream).")  # fmt: skip
        block = keywords.get("block")
        sizes = block.elts if isinstance(block, (ast.List, ast.Tuple)) else []
        product = 1
        for size in sizes:
            product *= size.value if isinstance(size, ast.Constant) and isinstance(size.value, int) else 1
        if product > MAX_THREADS:
            yield warning(
                "L08-block", line, f"a block of {product} threads", f"At most {MAX_THREADS} threads per block."
            )
    elif name.endswith(".reduce") and len(node.args) + len(node.keywords) < 3:
        yield warning("L09-reduce", line, "reduce takes an operator, an initial value and a profile",
                      "Write v.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0).")  # fmt: skip
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _NO_METHOD and not name.startswith("cute."):
        yield warning("L10-no-method", line, f".{node.func.attr}() does not exist on a vector", ALIASES[node.func.attr])
    elif name.endswith("make_tensor") and node.args and _is_bare_offset(node.args[0]):
        yield warning("L11-alignment", line, "pointer arithmetic loses alignment and gives scalar loads",
                      "Use cute.local_tile, or (x.iterator + offset).align(16).")  # fmt: skip
    elif name.startswith("math.") and name not in _HOST_MATH and not all(_is_constant(arg, known) for arg in node.args):
        yield warning("L12-python-math", line, f"Python's {name} on a value known only on the GPU fails",
                      f"On device values use cute.{name}.")  # fmt: skip


# Functions that take only Python ints: they compute with static shapes.
_HOST_MATH = frozenset({"math.gcd", "math.lcm", "math.prod", "math.isqrt", "math.comb"})


_OF_NUMBERS = frozenset({"abs", "float", "int", "len", "max", "min", "pow", "round"})


def _known_numbers(function: ast.FunctionDef) -> frozenset[str]:
    """Names in ``function`` whose values are known during tracing: ``Constexpr`` parameters, and variables that get
    only constants (:func:`_is_constant`)."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    stored = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    known = {a.arg for a in arguments if a.annotation and _is_constexpr(a.annotation)} - stored.keys()
    changing = {a.arg for a in arguments} & stored.keys()  # they also have the caller's value
    assigned = (n for n in ast.walk(function) if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value)
    constant = Counter[str]()
    for node in sorted(assigned, key=lambda n: n.lineno):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for name in _constant_targets(target, node.value, known):
                constant[name] += 1
                if constant[name] == stored[name] and name not in changing:
                    known.add(name)
    return frozenset(known)


def _is_constexpr(annotation: ast.expr) -> bool:
    """Whether it is ``Constexpr`` or ``Constexpr[...]``."""
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return dotted(named).split(".")[-1] == "Constexpr"


def _constant_targets(target: ast.expr, value: ast.expr | None, known: Set[str]) -> Iterator[str]:
    """Names in ``target`` that get constants when ``value`` is assigned to it: one name, or one for each element."""
    if value is None:
        return
    if isinstance(target, ast.Name):
        if _is_constant(value, known):
            yield target.id
    elif isinstance(target, (ast.List, ast.Tuple)):
        given = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value] * len(target.elts)
        if len(given) == len(target.elts):
            for each, part in zip(target.elts, given, strict=True):
                yield from _constant_targets(each.value if isinstance(each, ast.Starred) else each, part, known)


def _is_constant(node: ast.expr, known: Set[str]) -> bool:
    """Whether ``node`` is a literal, a constant of ``math``, a shape (every build has static shapes) or a part of one,
    one of ``known``, or computed from these alone."""
    if isinstance(node, ast.Subscript):
        return _is_constant(node.value, known)
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.BinOp):
        return _is_constant(node.left, known) and _is_constant(node.right, known)
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand, known)
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        of_numbers = name in _OF_NUMBERS or name.startswith("math.")
        return of_numbers and not node.keywords and all(_is_constant(arg, known) for arg in node.args)
    if isinstance(node, ast.Attribute):
        return node.attr == "shape" or dotted(node.value) == "math"
    return isinstance(node, ast.Constant)


def _is_bare_offset(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and mentions(node, "iterator")
