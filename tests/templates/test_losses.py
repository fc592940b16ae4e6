"""Losses and other reductions of everything: two kernels, whatever the size, and the same sum at every call."""

from __future__ import annotations

import pytest

from cutegen_lab.core.artifact import Artifact
from tests.harness import checking
from tests.harness.checking import Compiler, problem_of


def judged(compiler: Compiler, expression: str, inputs: str, **config: int) -> tuple[str, Artifact]:
    return checking.judged(compiler, problem_of(expression, inputs, checks=None), **config)


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.mse_loss(x, y)", "x: f32[256,129], y: f32[256,129]"),
        ("F.l1_loss(x, y, reduction='sum')", "x: bf16[256,136], y: bf16[256,136]"),
        ("F.smooth_l1_loss(x, y, beta=0.5)", "x: f16[256,132], y: f16[256,132]"),
        ("F.kl_div(x, torch.sigmoid(y), reduction='batchmean')", "x: f32[256,128], y: f32[256,128]"),
        ("torch.clamp(1 - x * y, min=0).mean()", "x: f32[32771], y: f32[32771]"),
        ("F.binary_cross_entropy_with_logits(x, y)", "x: f32[256,128], y: f32[256,128]"),
        ("F.hinge_embedding_loss(x, y)", "x: f32[256,128], y: f32[256,128]"),
        ("x.max() * w + x.sum()", "x: f32[256,129], w: f32[1]"),
    ],
)
def test_everything_is_reduced_by_two_kernels(compiler: Compiler, expression: str, inputs: str) -> None:
    family, artifact = judged(compiler, expression, inputs)
    kernels = [kernel.name for kernel in artifact.builds["main"].kernels]
    assert family == "total" and len(kernels) == 2


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("torch.clamp(1 - x * y, min=0).mean()", "x: f32[24,96], y: f32[96]"),
        ("(x * y[:, None]).sum()", "x: bf16[24,96], y: bf16[24]"),
    ],
)
def test_an_input_that_rows_share_makes_rows_first(compiler: Compiler, expression: str, inputs: str) -> None:
    family, artifact = judged(compiler, expression, inputs)
    assert family == "row reduction" and len(artifact.builds["main"].kernels) == 2


def test_blocks_walk_in_steps_where_there_are_few(compiler: Compiler) -> None:
    config = {"vec": 2, "threads": 64, "loads": 2, "blocks": 66}
    assert judged(compiler, "F.mse_loss(x, y)", "x: f32[300,131], y: f32[300,131]", **config)[0] == "total"


def test_a_small_total_is_one_block_s_work_and_a_loss_by_element_needs_no_reduction(compiler: Compiler) -> None:
    assert judged(compiler, "F.mse_loss(x, y)", "x: f32[8,40], y: f32[8,40]")[0] == "row reduction"
    assert judged(compiler, "F.l1_loss(x, y, reduction='none')", "x: f32[8,40], y: f32[8,40]")[0] == "elementwise chain"


@pytest.mark.parametrize(
    ("expression", "inputs", "family"),
    [
        ("x / x.shape[0] + torch.clamp(x, max=x.shape[1] - 1)", "x: f32[40,96]", "elementwise chain"),
        ("torch.softmax(x / x.shape[-1], -1)", "x: bf16[20,96]", "row reduction"),
    ],
)
def test_a_constant_that_is_a_size_follows_the_shape(
    compiler: Compiler, expression: str, inputs: str, family: str
) -> None:
    assert judged(compiler, expression, inputs)[0] == family
