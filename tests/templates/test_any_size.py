"""Every kind of kernel at sizes, dtypes and configs drawn at random: one of each, and many with ``--exhaustive``.

``--seed`` repeats what a run drew.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.templates.recognise import template_for
from cutegen_lab.templates.template import Template
from tests.harness.checking import Compiler, built, checked_workloads, outcome, passed, problem_of

MANY = 24  # of each kind, with --exhaustive
TRIES = 400  # until a config is feasible
FLOATS = ("f32", "bf16", "f16")
HALVES = ("bf16", "f16")


@dataclass(frozen=True)
class Kind:
    """A reference of inputs whose sizes are ``{m}``, ``{n}`` and ``{k}``, at most ``most`` each."""

    expression: str
    inputs: str
    most: tuple[int, int, int]
    dtypes: tuple[str, ...] = FLOATS
    arch: str = "sm_90a"


KINDS = {
    "elementwise": Kind("F.gelu(x * s) + b", "x: {d}[{k},{m},{n}], s: {d}[{m},1], b: {d}[{n}]", (90, 300, 5)),
    "norm of rows": Kind("F.layer_norm(torch.relu(x), w.shape, w)", "x: {d}[{m},{n}], w: {d}[{n}]", (40, 3000, 1)),
    "softmax of rows": Kind("torch.softmax(x * 0.5, -1)", "x: {d}[{m},{n}]", (9, 30000, 1)),
    "place in rows": Kind("x.argmax(-1)", "x: {d}[{m},{n}]", (40, 3000, 1)),
    "columns": Kind("torch.softmax(x, -2)", "x: {d}[{k},{m},{n}]", (400, 100, 4)),
    "scan of rows": Kind("(x * 0.25).cumsum(-1)", "x: {d}[{m},{n}]", (30, 3000, 1)),
    "scan of columns": Kind("x.cumsum(-2)", "x: {d}[{k},{m},{n}]", (300, 70, 4)),
    "total": Kind("F.mse_loss(x, y)", "x: {d}[{m},{n}], y: {d}[{m},{n}]", (100, 900, 1)),
    "pooling": Kind("F.avg_pool2d(x, 3, 2, 1) * 2", "x: {d}[2,{k},{m},{n}]", (60, 300, 5)),
    "few rows times a matrix": Kind("F.silu(F.linear(x, w, b))", "x: {d}[{m},{k}], w: {d}[{n},{k}], b: {d}[{n}]",
                                    (8, 300, 600)),
    "product": Kind("F.gelu(F.linear(x, w, b))", "x: {d}[{m},{k}], w: {d}[{n},{k}], b: {d}[{n}]",
                    (300, 300, 400), HALVES),
    "batches": Kind("torch.bmm(a, b) * 0.5", "a: {d}[3,{m},{k}], b: {d}[3,{k},{n}]", (200, 200, 300), HALVES),
    "gated": Kind("F.silu(x @ g) * (x @ u)", "x: {d}[{m},{k}], g: {d}[{k},{n}], u: {d}[{k},{n}]",
                  (300, 300, 300), HALVES),
    "8 bits": Kind("(a.float() @ b.float().T).bfloat16()", "a: {d}[{m},{k}], b: {d}[{n},{k}]",
                   (200, 200, 400), ("f8e4m3fn", "f8e5m2")),
    "fp32": Kind("a @ b + c", "a: {d}[{m},{k}], b: {d}[{k},{n}], c: {d}[{n}]", (200, 200, 300), ("f32",)),
    "softmax of a product": Kind("torch.softmax(a @ b, -1)", "a: {d}[{m},{k}], b: {d}[{k},{n}]",
                                 (200, 500, 200), HALVES),
    "product, sm_80": Kind("torch.relu(a @ b + c)", "a: {d}[{m},{k}], b: {d}[{k},{n}], c: {d}[{n}]",
                           (200, 200, 300), FLOATS, "sm_80"),
    "several kernels": Kind("F.rms_norm(F.gelu(x @ w) + x.mean(), (w.shape[1],))", "x: {d}[{m},{k}], w: {d}[{k},{n}]",
                            (100, 200, 200), HALVES),
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    options = metafunc.config.option
    seeds = range(options.seed, options.seed + (MANY if options.exhaustive else 1))
    metafunc.parametrize(("kind", "seed"), [(kind, seed) for kind in KINDS for seed in seeds])


def test_it_is_right(compiler: Compiler, kind: str, seed: int) -> None:
    asked, dice = KINDS[kind], random.Random(f"{kind} {seed}")  # noqa: S311 - sizes, no secrets
    m, n, k = (size(dice, most) for most in asked.most)
    inputs = asked.inputs.format(d=dice.choice(asked.dtypes), m=m, n=n, k=k)
    problem = problem_of(asked.expression, inputs)
    template, workloads = template_for(problem, asked.arch), checked_workloads(compiler, problem)
    found = outcome(
        compiler, problem, built(compiler, template.write(some_config(dice, template)), workloads, asked.arch)
    )
    if found.verdict is Verdict.INCONCLUSIVE:  # too slow a config for an emulator
        passed(compiler, problem, template.write(template.default_config()), asked.arch)
    else:
        assert found.verdict is Verdict.PASSED, found


def size(dice: random.Random, most: int) -> int:
    """1 to ``most``, every magnitude as likely; half of them even multiples of what a vector holds."""
    found = round(math.exp(dice.uniform(0, math.log(most))))
    return found if dice.random() < 0.5 or found < 8 else found // 8 * 8


def some_config(dice: random.Random, template: Template) -> Config:
    """A feasible one; the default where :data:`TRIES` find none."""
    tried = ({name: dice.choice(values) for name, values in template.domains.items()} for _ in range(TRIES))
    return next(filter(template.feasible, tried), template.default_config())
