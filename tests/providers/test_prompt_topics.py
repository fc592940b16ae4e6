"""The class of work is read from the operators of the exported graph."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from cutegen_lab.core.roofline import GPUS
from cutegen_lab.providers.prompt_topics import EXAMPLES, MMA_EXAMPLE, WorkClass, example_for, work_class
from cutegen_lab.providers.prompting import prompts_dir
from tests.harness.checking import problem_of

X = "x: f32[8,16]"


@pytest.mark.parametrize(
    ("expression", "inputs", "expected"),
    [
        ("torch.softmax(torch.cumsum(x, -1), -1)", X, "scan"),
        ("x @ w.T", "x: bf16[512,512], w: bf16[512,512]", "matmul"),
        ("x @ w.T", "x: bf16[4,4096], w: bf16[512,4096]", "memory-bound product"),
        ("x @ w", "x: f32[256,4096], w: f32[4096]", "memory-bound product"),
        ("F.gelu(F.linear(x, w)).softmax(-1)", "x: bf16[512,512], w: bf16[512,512]", "matmul"),
        ("F.conv2d(x, w)", "x: f32[2,3,8,8], w: f32[4,3,3,3]", "convolution"),
        ("F.conv2d(x, w, groups=4)", "x: f32[2,4,8,8], w: f32[4,1,3,3]", "stencil"),
        ("F.scaled_dot_product_attention(x, x, x)", "x: f32[1,2,8,16]", "attention"),
        ("torch.softmax(x @ x.T, -1) @ x", X, "attention"),
        ("F.avg_pool2d(x, 2)", "x: f32[2,3,8,8]", "stencil"),
        ("F.adaptive_max_pool1d(x, 4)", "x: f32[2,3,8]", "stencil"),
        ("torch.softmax(x, dim=-1)", X, "row reduction"),
        ("torch.softmax(x, dim=1)", X, "row reduction"),
        ("x / x.norm(dim=-1, keepdim=True)", X, "row reduction"),
        ("F.layer_norm(x, (16,))", X, "row reduction"),
        ("(x - x.mean()) / x.std()", X, "row reduction"),
        ("x - x.mean(0)", X, "column reduction"),
        ("torch.softmax(x, dim=0)", X, "column reduction"),
        ("x.amax((0, 2), keepdim=True)", "x: f32[4,8,16]", "row reduction"),
        ("x.max(1).values", "x: f32[4,8,16]", "column reduction"),
        ("F.batch_norm(x, None, None, training=True)", X, "column reduction"),
        ("F.batch_norm(x, None, None, training=True)", "x: f32[2,3,8,8]", "row reduction"),
        ("F.batch_norm(x, m, v)", f"{X}, m: f32[16], v: f32[16]", "elementwise"),
        ("F.cosine_similarity(x, x)", X, "row reduction"),
        ("x.sum(0) + x.sum()", X, "row reduction"),
        ("torch.maximum(x, y) + torch.max(x, y)", f"{X}, y: f32[8,16]", "elementwise"),
        ("torch.relu(x)  # max, sum and x @ y are only words here", X, "elementwise"),
        ("x.T.contiguous()", X, "elementwise"),
    ],
)
def test_work_class(expression: str, inputs: str, expected: WorkClass) -> None:
    assert work_class(problem_of(expression, inputs), GPUS["H200"]) == expected


def test_names_that_hide_the_work_do_not_matter() -> None:
    problem = problem_of("torch.softmax(x, -1)", X)
    source = problem.source.replace("torch.softmax(x, -1)", "getattr(x, 'soft' + 'max')(-1)")
    assert source != problem.source and work_class(replace(problem, source=source), GPUS["H200"]) == "row reduction"


def test_what_cannot_be_exported_has_a_hint_too() -> None:
    problem = problem_of("x * 2", X)
    source = problem.source.replace("x * 2", "x * 2 if float(x.sum()) > 0 else x")
    assert source != problem.source and work_class(replace(problem, source=source), GPUS["H200"]) == "other"


def test_every_class_has_guidance_and_an_example() -> None:
    assert set(EXAMPLES) == set(get_args(WorkClass))
    stems = {kind.replace(" ", "_").replace("-", "_") for kind in get_args(WorkClass)}
    assert {path.stem for path in (prompts_dir() / "classes").iterdir()} == stems
    shown = {name for name, _ in (*EXAMPLES.values(), MMA_EXAMPLE)}
    assert {path.stem for path in (prompts_dir() / "examples").iterdir()} == shown


@pytest.mark.parametrize(
    ("inputs", "gpu", "expected"),
    [
        ("x: bf16[512,512], w: bf16[512,512]", "H200", "matmul"),
        ("x: bf16[512,512], w: bf16[512,512]", "A100", "matmul_mma"),
        ("x: bf16[512,512]:(640,1), w: bf16[512,512]:(1,512)", "H200", "matmul"),
        ("x: bf16[512,516], w: bf16[512,516]", "H200", "matmul_mma"),
        ("x: bf16[512,512]:(516,1), w: bf16[512,512]", "H200", "matmul_mma"),
        ("x: bf16[512,512], w: bf16[512,512]; x: bf16[512,500], w: bf16[512,500]", "H200", "matmul_mma"),
        ("x: bf16[48,4096], w: bf16[4096,4096]", "H200", "matmul_mma"),
        ("x: bf16[8,128,512], w: bf16[512,512]", "H200", "matmul"),
    ],
)
def test_the_example_for_a_product_is_one_that_its_sizes_allow(inputs: str, gpu: str, expected: str) -> None:
    problem = problem_of("x @ w.T", inputs)
    assert work_class(problem, GPUS[gpu]) == "matmul"
    assert example_for("matmul", problem, GPUS[gpu])[0] == expected
