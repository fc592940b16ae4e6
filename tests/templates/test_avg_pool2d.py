"""Average pooling: every window, padding and epilogue against PyTorch, and what it is not for."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.families import avg_pool2d
from cutegen_lab.templates.pipeline import Pipeline
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import ARCH, Compiler, passed, problem_of

IMAGES = "x: f32[3,5,19,22]"
CASES = {
    "windows side by side": ("F.avg_pool2d(x, 2)", "x: bf16[2,8,32,48]"),
    "windows that overlap": ("F.avg_pool2d(x, 3, stride=2)", IMAGES),
    "rows and columns apart": ("F.avg_pool2d(x, (2, 5), stride=(3, 1))", IMAGES),
    "padding that counts": ("F.avg_pool2d(x, 3, stride=2, padding=1)", "x: f16[3,5,19,22]"),
    "padding that does not": ("F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)", IMAGES),
    "a divisor": ("F.avg_pool2d(x, 2, divisor_override=3)", IMAGES),
    "one image": ("F.avg_pool2d(x, 4)", "x: f32[7,40,36]"),
    "an epilogue": (
        "F.gelu(F.avg_pool2d(x, 2) * s[:, None, None] + r)",
        "x: bf16[2,6,16,18], s: f32[6], r: bf16[2,6,8,9]",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("outputs", [1, 4])
def test_it_is_what_pytorch_has(compiler: Compiler, name: str, outputs: int) -> None:
    problem = problem_of(*CASES[name], checks=("prime", "tail"))
    template = template_for(problem, ARCH)
    assert template.name == avg_pool2d.NAME
    passed(compiler, problem, template.write({"threads": 64, "outputs": outputs}))


def test_more_outputs_a_thread_where_there_are_many_and_windows_are_small() -> None:
    configs = [
        template_for(problem_of(f"F.avg_pool2d(x, {window})", inputs), ARCH).default_config()["outputs"]
        for window, inputs in ((2, "x: f32[2,3,32,32]"), (2, "x: f32[64,64,128,128]"), (12, "x: f32[256,256,120,120]"))
    ]
    assert configs == [1, 4, 1]


def test_the_limit_is_told() -> None:
    template = template_for(problem_of("F.avg_pool2d(x, 6)", "x: f32[2,3,32,32]"), ARCH)
    assert "144 values in flight" in template.why_not({"threads": 64, "outputs": 4})
    assert template.feasible({"threads": 64, "outputs": 1})


def test_what_comes_before_it_and_after_it_in_rows_are_kernels_of_their_own(compiler: Compiler) -> None:
    problem = problem_of("torch.softmax(F.avg_pool2d(F.relu(x), 2), -1)", "x: f32[2,3,16,32]", checks=("prime",))
    template = template_for(problem, ARCH)
    assert isinstance(template, Pipeline) and avg_pool2d.NAME in template.name
    passed(compiler, problem, template.write(template.default_config()))


@pytest.mark.parametrize(
    ("expression", "why"),
    [("F.avg_pool2d(x, 3, ceil_mode=True)", "ceil_mode"), ("F.max_pool2d(x, 2)", "max_pool2d")],
)
def test_what_it_is_not_for_is_said(expression: str, why: str) -> None:
    with pytest.raises(ProviderError, match=why):
        template_for(problem_of(expression, IMAGES), ARCH)
