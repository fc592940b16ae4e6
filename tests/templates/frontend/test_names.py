"""Tensors called as kernels call something of their own."""

from __future__ import annotations

import ast
import itertools
from collections import Counter

import pytest

from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.frontend.names import apart, well_named
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import Compiler, passed, problem_of

NAMES = (("fetch", "n"), ("stream", "row"), ("gOut", "_"))
EXPRESSIONS = {
    "rows": ("torch.softmax({0} * {1}, -1)", "{0}: bf16[6,1001], {1}: bf16[6,1001]"),
    "elementwise": ("torch.sin({0}) * {1}", "{0}: bf16[6,1024], {1}: bf16[1024]"),
    "columns": ("({0} * {1}).sum(0)", "{0}: f32[40,64], {1}: f32[40,64]"),
    "total": ("({0} * {1}).sum()", "{0}: f32[40,64], {1}: f32[40,64]"),
    "scan": ("torch.cumsum({0} * {1}, -1)", "{0}: f32[6,96], {1}: f32[6,96]"),
    "product": ("{0} @ {1}", "{0}: bf16[64,96], {1}: bf16[96,64]"),
    "few rows": ("{0} @ {1}.T", "{0}: bf16[1,256], {1}: bf16[64,256]"),
    "several kernels": ("torch.softmax({0} @ {1}, -1) @ {1}.T", "{0}: bf16[64,96], {1}: bf16[96,64]"),
}


@pytest.mark.parametrize(("family", "names"), list(zip(EXPRESSIONS, itertools.cycle(NAMES))))
def test_kernels(compiler: Compiler, family: str, names: tuple[str, str]) -> None:
    expression, inputs = (text.format(*names) for text in EXPRESSIONS[family])
    problem = problem_of(expression, inputs, checks=())
    template = template_for(problem, "sm_90a")
    passed(compiler, problem, template.write(template.default_config()))


@pytest.mark.slow
def test_every_name_of_a_row_kernel_may_be_a_tensors() -> None:
    """What its tensor is called, nothing else is in the functions that name it."""
    mine, plain = _tensor_and_names("mine_alone")
    assert mine == "mine_alone" and {"rows", "walks", "finish", "peak", "cutlass", "reduce_rows"} <= set(plain)
    for name in sorted(set(plain) - {"mine_alone"}):
        called, names = _tensor_and_names(name)
        assert names[called] == plain["mine_alone"], name


def _tensor_and_names(name: str) -> tuple[str, Counter[str]]:
    """What a softmax's launcher calls its input, and how often each name stands in it and in what writes results."""
    template = template_for(problem_of(f"torch.softmax({name}, -1)", f"{name}: bf16[6,1001]", checks=()), "sm_90a")
    functions = {f.name: f for f in ast.parse(template.write(template.default_config())).body if hasattr(f, "name")}
    nodes = [*ast.walk(functions["launch"]), *ast.walk(functions["finish"])]
    return functions["launch"].args.args[0].arg, Counter(node.id for node in nodes if isinstance(node, ast.Name))


def test_names_that_nothing_else_has_stay() -> None:
    problem = problem_of("a + b", "a: f32[4,6], b: f32[4,6]")
    assert well_named(problem, lambda p: _text(p, "plus")) is problem
    assert _names(well_named(problem, lambda p: _text(p, "b"))) == ["a", "b_", "out"]
    assert _names(well_named(problem, lambda p: _text(p, "out", "out_"))) == ["a", "b", "out_t"]


def _text(problem: Problem, *own: str) -> str:
    """A launcher that gives ``own`` to numbers, and one that knows no tensor."""
    names = ", ".join(_names(problem))
    numbers = "".join(f"    {name} = 1\n" for name in own)
    return f"def launch({names}, stream):\n{numbers}    return {names}\n\n\ndef plus(a, b):\n    return a + b\n"


def _names(problem: Problem) -> list[str]:
    return [tensor.name for tensor in problem.workload.tensors]


def test_tensors_are_told_apart() -> None:
    assert _names(apart(problem_of("out * 2", "out: f32[4,6]"))) == ["out", "out_"]
    assert _names(apart(problem_of("x * X", "x: f32[4,6], X: f32[4,6]"))) == ["x", "X_", "out"]
    assert _names(apart(problem_of("_ * x * gX", "_: f32[4,6], x: f32[4,6], gX: f32[4,6]"))) == [
        "_t",
        "x",
        "gX_",
        "out",
    ]
