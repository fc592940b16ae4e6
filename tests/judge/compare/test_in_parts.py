"""Large references are computed in parts, where these do not depend on each other: nothing but memory and time
changes."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from cutegen_lab.core.trial import OutputError, WorkloadCheck
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge.compare import in_parts
from cutegen_lab.judge.compare.in_parts import LargestResult, ReferenceInParts
from cutegen_lab.judge.compare.outputs import OutputComparison
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.reference_device import ReferenceDevice
from cutegen_lab.judge.rounding.samples import perturbed_samples, rerounded_results
from cutegen_lab.problems import Reference, read_text

LARGE = 1 << 12  # elements, instead of tens of millions
ATTENTION = read_text(
    "def reference(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)\n",
    name="attention", inputs_text="q: bf16[3,2,64,16], k: bf16[3,2,64,16], v: bf16[3,2,64,16]",
)  # fmt: skip
INPUTS = draw(ATTENTION.workload, "normal", 3)


@pytest.fixture(autouse=True)
def few_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "LARGE", LARGE)


def parts_of(expression: str, inputs_text: str) -> ReferenceInParts | None:
    problem = read_text(f"def reference(x, y):\n    return {expression}\n", name="p", inputs_text=inputs_text)
    inputs = draw(problem.workload, "normal", 1)
    reference = Reference(problem)
    return in_parts.in_parts(reference, inputs, reference.run_float64(inputs), 8 * LARGE)


@pytest.mark.parametrize(
    ("expression", "inputs_text", "axis"),
    [
        ("torch.softmax(x, -1) * y", "x: f32[8,16], y: f32[16]", 0),
        ("torch.softmax(x, 0) * y", "x: f32[8,16], y: f32[8,16]", 1),
        ("x @ y", "x: f32[16,16], y: f32[16,16]", 0),  # y stays whole
        ("x @ y", "x: f32[8,16], y: f32[16,24]", 0),
        ("torch.bmm(x, y)", "x: f32[8,16,16], y: f32[8,16,16]", 0),
        ("x - x.mean()", "x: f32[8,16], y: f32[8,16]", None),
        ("x * y + 1e-6 * x.mean()", "x: f32[8,16], y: f32[8,16]", None),
        ("x.reshape(8, 16) * y", "x: f32[8,16], y: f32[16]", None),  # takes eight rows only
        ("(x * y).sum()", "x: f32[8,16], y: f32[16]", None),
        ("(x * y, x.sum(0))", "x: f32[8,16], y: f32[16]", None),  # two outputs with no axis in common
    ],
)
def test_parts_are_found_where_they_are_independent(expression: str, inputs_text: str, axis: int | None) -> None:
    parts = parts_of(expression, inputs_text)
    assert (parts.axis if parts else None) == axis


def attention_in_parts() -> ReferenceInParts:
    reference = Reference(ATTENTION)
    wanted = reference.run_float64(INPUTS)
    parts = in_parts.in_parts(reference, INPUTS, wanted, 3 * 2 * 64 * 64)
    assert parts is not None
    assert in_parts.in_parts(reference, INPUTS, wanted, LARGE) is None
    return parts


def test_results_and_the_effect_of_rounding_are_the_same() -> None:
    parts, whole = attention_in_parts(), Reference(ATTENTION)
    torch.testing.assert_close(parts.run_float64(INPUTS), whole.run_float64(INPUTS))
    torch.testing.assert_close(parts.run(INPUTS), whole.run(INPUTS))
    effects = []
    for reference in (parts, whole):
        exact = reference.run_float64(INPUTS)[0]
        some = [result[0] - exact for result in perturbed_samples(reference, INPUTS, 2.0**-24, 5)]
        effects.append(float(torch.stack(some).square().mean().sqrt()))
    assert effects[0] == pytest.approx(effects[1], rel=0.05)


def test_no_intermediate_result_is_larger() -> None:
    parts = attention_in_parts()
    with LargestResult() as whole:
        perturbed_samples(Reference(ATTENTION), INPUTS, 2.0**-24, 5)
    with LargestResult() as seen:
        perturbed_samples(parts, INPUTS, 2.0**-24, 5)
    assert seen.elements <= max(LARGE * 2, INPUTS[0].numel()) < whole.elements


def test_what_is_gathered_is_not_rounded_again() -> None:
    problem = read_text("def reference(x):\n    return x.exp()\n", name="p", inputs_text="x: bf16[8,16]")
    inputs, reference = draw(problem.workload, "normal", 3), Reference(problem)
    parts = in_parts.in_parts(reference, inputs, reference.run_float64(inputs), 4 * LARGE)
    assert parts is not None
    assert all(torch.equal(result, reference.run(inputs)[0]) for (result,) in rerounded_results(parts, inputs, 1))


def errors(outputs: torch.Tensor, distribution: str = "normal") -> OutputError:
    workload = ATTENTION.workload
    place = ReferenceDevice(EmulatorDevice(), workload)
    answers = OutputComparison(Reference(ATTENTION), workload, ATTENTION.tolerances, place)
    check = WorkloadCheck(workload.name, distribution, 3, Verdict.PASSED)
    return answers.errors(INPUTS, [outputs], check)[0]


@pytest.mark.parametrize("factor", [1.0, 1.012, 1.1, 2.0], ids=["right", "within rounding", "wrong", "clearly wrong"])
def test_the_verdict_is_the_same(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    got = Reference(ATTENTION).run(INPUTS)[0].clone()
    got[2, 1, 7:39] *= factor
    found = errors(got)
    monkeypatch.setattr(in_parts, "LARGE", 1 << 30)
    whole = errors(got)
    assert found.ok == whole.ok
    assert found.ok == (factor < 1.05)
    assert found.worst_index == whole.worst_index
    assert (found.got, found.expected) == (whole.got, pytest.approx(whole.expected))


def test_too_little_memory_is_an_error_before_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = 11 * 8 * LARGE  # for parts of an attention, not for all of it

    def with_memory(bytes: int) -> SimpleNamespace:
        return SimpleNamespace(available=bytes)

    wrong = Reference(ATTENTION).run(INPUTS)[0] * 2
    monkeypatch.setattr("psutil.virtual_memory", partial(with_memory, enough))
    assert not errors(wrong).ok
    monkeypatch.setattr("psutil.virtual_memory", partial(with_memory, enough // 4))
    with pytest.raises(MemoryError, match="needed"):
        errors(wrong)
    assert errors(Reference(ATTENTION).run(INPUTS)[0]).ok


def test_an_error_between_the_limits_is_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has fewer elements to be lucky with: only an error far over its limits decides there."""
    monkeypatch.setattr("cutegen_lab.judge.compare.outputs._CLEAR", 1e9)
    got = Reference(ATTENTION).run(INPUTS)[0].clone()
    got[1] *= 1.5
    in_some_parts = errors(got)
    monkeypatch.setattr(in_parts, "LARGE", 1 << 30)
    assert not in_some_parts.ok
    assert in_some_parts.norm == errors(got).norm
