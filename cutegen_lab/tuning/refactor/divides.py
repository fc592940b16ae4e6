"""Finds divisions of tensor sizes by parameters that must have no remainder, from a kernel's text.

``x.shape[1] // (threads * vec)`` in launch(), or in a kernel that receives x, leaves out the end of the tensor if there
is a remainder. A rounded-up division has a sum before the ``//`` and is not one of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.tuning.refactor.text import KernelText, assigned

_MAX_DEPTH = 4  # maximum depth of nested calls that are followed


def even_divisions(
    text: KernelText, names: Sequence[str], default: Config, workloads: Sequence[Workload],
    numbers: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:  # fmt: skip
    """Expressions for ``constraints(config, workload, device)`` that hold for ``default`` on ``workloads``.
    ``numbers``: keywords of launch() that the config does not set."""
    found: dict[str, None] = {}
    launch = text.functions["launch"]
    tensors = [a.arg for a in launch.args.args]
    tensors = tensors[: tensors.index("stream")] if "stream" in tensors else tensors
    bound = {name: f"workload.tensors[{at}]" for at, name in enumerate(tensors)}
    values = {**{n: str(v) for n, v in numbers.items()}, **{n: f'config["{n}"]' for n in names}}
    for expression in _divisions(text, launch, bound, {}, values, 0):
        if all(holds(expression, default, w) for w in workloads):
            found[expression] = None
    return list(found)


def _divisions(
    text: KernelText, function: ast.FunctionDef, tensors: Mapping[str, str], extents: Mapping[str, str],
    values: Mapping[str, str], depth: int,
) -> Iterator[str]:  # fmt: skip
    sizes, known = dict(extents), dict(values)
    for statement in ast.walk(function):
        for name, value in assigned(statement) if isinstance(statement, ast.stmt) else ():
            if (size := _size(value, tensors, sizes)) is not None:
                sizes[name] = size
            elif (computed := _computed(value, known)) is not None and name not in known:
                known[name] = computed
    inner = {id(n.left) for n in ast.walk(function) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv)}
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and id(node) not in inner:
            whole: ast.expr = node.left
            parts = [_computed(node.right, known)]
            while isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.FloorDiv):
                parts = [_computed(whole.right, known), *parts]
                whole = whole.left
            size, by = _size(whole, tensors, sizes), [part for part in parts if part is not None]
            if size is not None and len(by) == len(parts) and any("config[" in part for part in by):
                yield f"{size} % {by[0] if len(by) == 1 else '(' + ' * '.join(by) + ')'} == 0"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and depth < _MAX_DEPTH:
            called = text.functions.get(node.func.id)
            if called is not None:
                handed = list(_handed(called, node))
                yield from _divisions(
                    text, called,
                    {a: tensors[v.id] for a, v in handed if isinstance(v, ast.Name) and v.id in tensors},
                    {a: size for a, v in handed if (size := _size(v, tensors, sizes)) is not None},
                    {a: c for a, v in handed if (c := _computed(v, known)) is not None}, depth + 1,
                )  # fmt: skip


def _handed(function: ast.FunctionDef, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    names = [a.arg for a in function.args.args]
    yield from zip(names, call.args, strict=False)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg)


def _size(node: ast.expr, tensors: Mapping[str, str], sizes: Mapping[str, str]) -> str | None:
    """``x.shape[1]`` of a tensor, or a name that holds it."""
    if isinstance(node, ast.Name):
        return sizes.get(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        of, at = node.value.value, node.slice
        if isinstance(of, ast.Name) and of.id in tensors and isinstance(at, ast.Constant) and type(at.value) is int:
            return f"{tensors[of.id]}.shape[{at.value}]"
    return None


def _computed(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """A product, sum or quotient of integers and parameters, as text."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return str(value)
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(op=ast.Mult() | ast.FloorDiv() | ast.Add() | ast.Sub()):
            left, right = _computed(node.left, known), _computed(node.right, known)
            sign = {ast.Mult: "*", ast.FloorDiv: "//", ast.Add: "+", ast.Sub: "-"}[type(node.op)]
            return None if left is None or right is None else f"({left} {sign} {right})"
    return None


def holds(expression: str, config: Config, workload: Workload) -> bool:
    """Whether a division has no remainder: an expression of sizes, integers and config values, made by this module."""
    try:
        return bool(eval(expression, {"__builtins__": {}}, {"config": config, "workload": workload}))  # noqa: S307
    except (ArithmeticError, IndexError, KeyError, TypeError):
        return False
