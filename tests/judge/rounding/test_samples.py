"""What rounding does to a reference, and where it does nothing at all."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.judge.compare.distances import rms
from cutegen_lab.judge.rounding.formula import run_and_test_exactness
from cutegen_lab.judge.rounding.noise import UNIT_ROUNDOFF
from cutegen_lab.judge.rounding.samples import (
    jump_results,
    perturbed,
    perturbed_samples,
    regrouped_samples,
    rerounded_results,
)
from cutegen_lab.problems import Reference, read_text


def reference(expression: str, inputs: str = "x: f32[8,32]") -> Reference:
    names = ", ".join(part.split(":")[0].strip() for part in inputs.split("], "))
    return Reference(read_text(f"def reference({names}):\n    return {expression}\n", inputs_text=inputs))


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.BF16])
def test_the_effect_on_a_product_is_of_the_size_of_the_unit(dtype: DType) -> None:
    plain, x = reference("x * 3.7"), drawn(8, 32)
    exact = plain.run_float64([x])[0]
    effect = rms(perturbed(plain, [x], UNIT_ROUNDOFF[dtype], 5)[0] - exact) / rms(exact)
    assert 0.3 * UNIT_ROUNDOFF[dtype] < effect < 1.5 * UNIT_ROUNDOFF[dtype]


def test_intermediate_results_move_though_inputs_cancel_exactly() -> None:
    """x − mean(x) of one column is 0 whatever x is, until the mean itself is rounded."""
    centred, x = reference("x - x.mean(-1, keepdim=True)", "x: f32[9,1]"), drawn(9, 1) + 100
    assert not bool(centred.run_float64([x])[0].any())
    for sample in perturbed_samples(centred, [x], UNIT_ROUNDOFF[DType.F32], 1):
        size = float(sample[0].abs().max())
        assert 1e-7 < size < 2e-5


@pytest.mark.parametrize(
    ("expression", "size"),
    [
        ("(x - x.mean(-1, keepdim=True)) * 300", 600.0),
        ("300 * (x.mean(-1, keepdim=True) - x)", 600.0),
        ("(x - x.mean(-1, keepdim=True)) / 0.5", 4.0),
        ("F.layer_norm(x, x.shape[-1:], None, None, 1e-4)", 200.0),
        ("(x - x.mean(-1, keepdim=True)).square()", 0.0),
        ("F.log_softmax(x, -1)", 2.0),
        ("x - (x.mean(-1, keepdim=True) + 0)", 2.0),
        ("x * 300 - x.mean(-1, keepdim=True) * 300", 0.0),
    ],
)
def test_a_difference_of_products_loses_a_rounding_of_each(expression: str, size: float) -> None:
    """Of one column the variance is 0, and so is the result: rounded x would make the variance of large x matter."""
    scaled, x = reference(expression, "x: f32[64,1]"), drawn(64, 1).exp() * 1e7
    assert not bool(scaled.run_float64([x])[0].any())
    for (sample,) in regrouped_samples(scaled, [x], UNIT_ROUNDOFF[DType.F32], 1):
        lost = float((sample / x).abs().max()) * 2**24
        assert 0.8 * size <= lost <= size


@pytest.mark.parametrize(
    ("expression", "either"),
    [
        ("(x * 0.5).round()", False),
        ("(x * 0.1).round()", True),
        ("(x * 0.1).to(torch.int32)", True),
        ("x > x.mean(-1, keepdim=True)", True),
        ("x >= x.amax(-1, keepdim=True)", False),
        ("(y := x * 3) >= y.amax(-1, keepdim=True)", False),
        ("x > 5", False),
    ],
)
def test_rounding_decides_a_jump_of_computed_numbers_next_to_it(expression: str, either: bool) -> None:
    """0.1 is rounded, and so are its products at a half; the mean of 0 to 30 is 15, unless its sum is rounded."""
    jumping, x = reference(expression, "x: f32[4,31]"), torch.arange(31.0).expand(4, 31)
    (wanted,) = jumping.run_float64([x])
    results = [result for (result,) in jump_results(jumping, [x], 1)]
    assert any(not torch.equal(result, wanted) for result in results) is either


def test_choosing_and_copying_rounds_nothing_more() -> None:
    plain, x = reference("x.relu().max(-1).values.clone()"), drawn(8, 32)
    shaken = perturbed(plain, [x], UNIT_ROUNDOFF[DType.F32], 5)[0]
    relative = (shaken / plain.run_float64([x])[0] - 1).abs()
    assert float(relative.max()) <= UNIT_ROUNDOFF[DType.F32]


def test_nan_and_zero_stay_what_they_are() -> None:
    plain = reference("x * 2")
    x = torch.zeros(8, 32)
    x[0, 0] = float("nan")
    shaken = perturbed(plain, [x], UNIT_ROUNDOFF[DType.BF16], 5)[0]
    assert int(shaken.isnan().sum()) == 1 and not bool(shaken.nan_to_num().any())


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        ("x.sum(-1)", True),
        ("x @ x.T", True),
        ("(x + x).relu()[:, ::2].clone()", True),
        ("x * 0.5", False),
        ("x.mean(-1)", False),
        ("torch.softmax(x, -1)", False),
        ("x.sum(-1).exp()", False),
        ("x * 2.0 ** 30", False),
    ],
)
def test_sums_of_ones_are_exact_and_other_things_are_not(expression: str, exact: bool) -> None:
    plain, bits = reference(expression), (drawn(8, 32) > 0).float()
    result, found = run_and_test_exactness(lambda: plain.run_float64([bits]))
    assert found is exact
    assert torch.equal(result[0], plain.run_float64([bits])[0])


@pytest.mark.parametrize(
    ("expression", "inputs", "shapes"),
    [
        ("x.sum(-1)", "x: f32[16,8192]", [(16, 8192)]),
        ("x.mean(-1)", "x: f32[16,8192]", [(16, 8192)]),
        ("a @ b", "a: f32[4,8192], b: f32[8192,4]", [(4, 8192), (8192, 4)]),
        ("torch.bmm(a, b)", "a: f32[2,2,8192], b: f32[2,8192,4]", [(2, 2, 8192), (2, 8192, 4)]),
        ("F.linear(a, b, c)", "a: f32[4,8192], b: f32[4,8192], c: f32[4]", [(4, 8192), (4, 8192), (4,)]),
        ("a @ b", "a: f32[16,8192], b: f32[8192]", [(16, 8192), (8192,)]),
    ],
)
def test_sums_of_sorted_terms_lose_what_adding_one_after_another_does(
    expression: str, inputs: str, shapes: list[tuple[int, ...]]
) -> None:
    """Half of the terms are below zero and come first: partial sums are far larger than the result."""
    summed = reference(expression, inputs)
    drawn_ones = [drawn(*shape).sort(-1).values if at == 0 else drawn(*shape).abs() for at, shape in enumerate(shapes)]
    (wanted,) = summed.run_float64(drawn_ones)
    x, *rest = drawn_ones
    if "linear" in expression:
        terms = x[:, None] * rest[0][None]
    elif rest:
        terms = x[..., :, None, :] * rest[0].mT[..., None, :, :] if rest[0].dim() > 1 else x * rest[0]
    else:
        terms = x / 8192 if "mean" in expression else x
    naive = torch.zeros(terms.shape[:-1])
    for at in range(terms.shape[-1]):
        naive += terms[..., at]
    naive = naive + rest[1] if "linear" in expression else naive
    lost = rms(naive - wanted)
    found = max(rms(result[0] - wanted) for result in rerounded_results(summed, drawn_ones, 3))
    assert lost / 3 < found < 3 * lost


@pytest.mark.parametrize("alike", ["both", "left", "neither"])
def test_a_product_of_equal_terms_loses_more_where_they_are_added_one_after_another(alike: str) -> None:
    """Each addition of the same number rounds the same way, while the sum's exponent stays."""
    summed = reference("a @ b", "a: f32[4,4096], b: f32[4096,4]")
    a = torch.full((4, 4096), 1.1) if alike != "neither" else drawn(4, 4096)
    b = torch.full((4096, 4), 0.7) if alike == "both" else drawn(4096, 4)
    (wanted,) = summed.run_float64([a, b])
    naive = torch.zeros(4, 4)
    for at in range(4096):
        naive += a[:, at, None] * b[at]
    found = max(rms(result[0] - wanted) for result in rerounded_results(summed, [a, b], 6))
    usual = rms(wanted) * 2**-24 * 4096**0.5
    assert rms(naive - wanted) < 3 * found
    assert found > 10 * usual if alike == "both" else found < 10 * usual


def test_what_float32_holds_as_a_subnormal_may_be_nothing() -> None:
    """sigmoid(-88) is 6e-39, which ``.ftz`` flushes: what it is multiplied by does not bring it back."""
    gated = reference("x * torch.sigmoid(g)", "x: f32[8], g: f32[8]")
    inputs = [torch.full((8,), 5e7), torch.full((8,), -88.0)]
    assert float(gated.run_float64(inputs)[0][0]) > 1e-31
    assert not bool(perturbed(gated, inputs, UNIT_ROUNDOFF[DType.F32], 5)[0].any())
    assert bool(perturbed(gated, inputs, UNIT_ROUNDOFF[DType.F64], 5)[0].all())
