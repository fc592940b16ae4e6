"""Every product is judged on a ragged summed dimension, and on a long one, where the reference takes it."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.problem import Problem
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.problems import read_text
from tests.judge.honest import Function
from tests.judge.test_draws import problem
from tests.judge.test_formulas import judged

SCORES = ("a @ b.mT", "a: f32[4,40,64], b: f32[4,48,64]")
BYTES = ("a.int() @ b.int()", "a: i8[64,128], b: i8[128,96]")
GATED = ("F.silu(x @ w) * (x @ v)", "x: f32[64,512], w: f32[512,600], v: f32[512,600]")
MODEL = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
    def forward(self, x):
        return torch.relu(self.fc(x))
def get_inputs():
    return [torch.randn(128, 512)]
def get_init_inputs():
    return [512, 256]
"""


def sums(task: Problem, at: int = 0, dim: int = -1) -> set[int]:
    return {workload.inputs[at].shape[dim] for workload in task.check_workloads}


@pytest.mark.parametrize(
    ("task", "dim"),
    [
        (problem(*SCORES), -1),
        (problem(*BYTES), -1),
        (problem(*GATED), -1),
        (problem("a @ b", "a: bf16[512,1024], b: bf16[1024,768]"), -1),
        (problem("torch.bmm(a, b)", "a: f16[8,256,512], b: f16[8,512,128]"), -1),
        (problem("x.T @ x", "x: f32[512,128]"), 0),
        (read_text(MODEL), -1),
    ],
)
def test_a_sum_that_no_vector_divides_and_one_that_no_tile_does(task: Problem, dim: int) -> None:
    sizes, most = sums(task, dim=dim), task.workload.inputs[0].shape[dim]
    assert any(size > 8 and size % 8 for size in sizes)
    assert any(size >= 48 and size % 8 == 0 and size % 32 for size in sizes)
    assert max(sizes) >= 0.7 * min(most, 1136)


def test_sums_that_the_reference_fixes_stay() -> None:
    task = problem("(x.unflatten(-1, (-1, 128)) @ w).sum(-2)", "x: f32[64,1024], w: f32[128,32]")
    assert sums(task, 1, 0) == {128}
    assert not any(workload.name.endswith("_sum") for workload in task.check_workloads)


def whole_steps(step: int, product: Function) -> Function:
    """Leaves out what is left of the summed dimension after steps of ``step``."""

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        k = a.shape[-1] // step * step or a.shape[-1]
        return product(a[..., :k], b, k)

    return function


WRONG: dict[str, tuple[str, str, Function]] = {
    "scores in steps of 16": (*SCORES, whole_steps(16, lambda a, b, k: a @ b[..., :k].mT)),
    "scores in steps of 32": (*SCORES, whole_steps(32, lambda a, b, k: a @ b[..., :k].mT)),
    "bytes in steps of 64": (*BYTES, whole_steps(64, lambda a, b, k: a.int() @ b[:k].int())),
    "a ring that wraps": (
        "x.T @ x", "x: f32[512,128]", lambda x: x[:256].T @ x[:256] if x.shape[1] < 128 else x.T @ x
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_for_a_ragged_sum_is_refused(name: str) -> None:
    assert judged(*WRONG[name]).verdict is Verdict.WRONG_RESULT
