"""Problems whose answer hardly depends on an input are labelled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import read_text
from tests.harness.checking import problem_of
from tests.problems.test_workloads import MODEL

FLAT = "torch.relu((m := x.amax(1, keepdim=True)) - m.mean(1, keepdim=True)) + y * 0"


@pytest.mark.parametrize(
    ("expression", "inputs", "names"),
    [
        (FLAT, "x: f32[64,64], y: f32[64]", ("x", "y")),
        ("torch.sigmoid(x * 1e-9 + y * 1e-9)", "x: f32[64,512], y: f32[512]", ("x", "y")),
        ("x + y * 0", "x: bf16[64,64], y: bf16[64]", ("y",)),
        ("torch.softmax(x + y[:, None], -1)", "x: f32[64,96], y: f32[64]", ("y",)),
    ],
)
def test_inputs_that_no_output_shows_are_named(expression: str, inputs: str, names: tuple[str, ...]) -> None:
    problem = problem_of(expression, inputs, checks=None)
    assert problem.insensitive == names
    assert problem.label == f"the answer hardly depends on {', '.join(names)}: left out of means"


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("torch.softmax(x, -1)", "x: bf16[64,512]"),
        ("x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w", "x: bf16[64,512], w: bf16[512]"),
        ("a @ b + c", "a: bf16[256,4096], b: bf16[4096,256], c: bf16[256]"),
        ("torch.where(m, x, y)", "m: bool[64,64], x: f32[64,64], y: f32[64,64]"),
        ("x.argmax(-1)", "x: f32[64,512]"),
        ("x.clamp(-1, 1)", "x: f32[64,512]"),
        ("x[i]", "x: f32[64,512], i: i64[30]"),
        ("torch.exp(x * 4)", "x: f32[64,512]"),
        ("(x > 2).to(x.dtype)", "x: f32[64,512]"),
        ("x.to(torch.float8_e4m3fn)", "x: f32[64,512]"),
        ("(w & 15).to(torch.float16) * s", "w: u8[64,32], s: f16[32]"),
    ],
)
def test_inputs_that_an_output_shows_are_not(expression: str, inputs: str) -> None:
    problem = problem_of(expression, inputs, checks=None)
    assert problem.insensitive == () and problem.label == ""


def model(layers: str, forward: str) -> Problem:
    return read_text(MODEL.format(layers=layers, forward=forward, inputs="64, 512"))


def test_a_models_weights_are_named_and_small_parameters_are_not() -> None:
    flat = model("self.fc = nn.Linear(512, 256)", "m = self.fc(x).amax(1, True); return F.gelu(m - m.mean(1, True))")
    assert flat.insensitive == ("x", "fc_weight")  # not its bias
    cancelled = model("self.fc, self.n = nn.Linear(512, 256), nn.BatchNorm1d(256)", "return self.n(self.fc(x))")
    assert cancelled.insensitive == ()


def test_a_reference_that_raises_in_float64_has_no_label() -> None:
    source = "def reference(x):  # x: f32[64,64]\n    assert x.dtype != torch.float64\n    return x * 0\n"
    assert read_text(source).insensitive == ()


def test_the_key_of_a_problem_does_not_depend_on_the_label() -> None:
    problem = problem_of("x + y * 0", "x: bf16[64,64], y: bf16[64]", checks=None)
    assert replace(problem, insensitive=()).key == problem.key
