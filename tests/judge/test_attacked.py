"""Kernels that passed once: wrong for inputs that no draw held, or where limits allowed anything."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.compare.correctness import compare
from cutegen_lab.problems import read_text
from tests.judge.honest import Function
from tests.judge.test_draws import judged as judged_on_torch
from tests.judge.test_draws import writes
from tests.judge.test_formulas import judged

LAYER = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = LAYER
    def forward(self, x):
        return EXPRESSION
def get_inputs():
    return [torch.randn(12, 64)]
def get_init_inputs():
    return []
"""


def of_layer(layer: str, expression: str, function: Callable[..., torch.Tensor], seed: int) -> CheckResult:
    task = read_text(LAYER.replace("LAYER", layer).replace("EXPRESSION", expression))
    return judged_on_torch(task, writes(function), seed=1000 * seed)


def test_parameters_are_as_training_may_leave_them(seeds: range) -> None:
    def clamped(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (64,), weight.clamp(1, 1.25), bias.clamp(0, 0.1))

    def of_positive_bias(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.linear(x, weight).relu() + bias.abs()

    def honest(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (64,), weight, bias)

    layer, linear = "nn.LayerNorm(64)", "nn.Linear(64, 24)"
    expression = "torch.relu(x @ self.layer.weight.T) + self.layer.bias"
    for seed in seeds:
        assert of_layer(layer, "self.layer(x)", clamped, seed).verdict is Verdict.WRONG_RESULT
        assert of_layer(linear, expression, of_positive_bias, seed).verdict is Verdict.WRONG_RESULT
        assert of_layer(layer, "self.layer(x)", honest, seed).verdict is Verdict.PASSED


def zero_at_a_glance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Takes a row for zeros where every eighth of its numbers is."""
    return (a @ b).masked_fill((a[:, ::8] == 0).all(-1, keepdim=True), 0.0)


def copied_rows(x: torch.Tensor) -> torch.Tensor:
    """Copies a row that is the first one's in 24 places."""
    some = x[:, :: max(x.shape[1] // 24, 1)]
    return torch.softmax(torch.where((some == some[:1]).all(-1, keepdim=True), x[:1], x), -1)


def not_a_number(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isinf(), torch.nan, x * 2)


def blind_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Takes what is not a number for zero."""
    return F.scaled_dot_product_attention(q, k, v.nan_to_num(0.0), is_causal=True)


def softmax_from(start: float) -> Function:
    """The running maximum starts at a number."""

    def function(x: torch.Tensor) -> torch.Tensor:
        power = (x.float() - x.float().amax(-1, keepdim=True).clamp_min(start)).exp()
        return power / power.sum(-1, keepdim=True)

    return function


def skipping_zeros(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(a[:, :, None] == 0, 0.0, a[:, :, None] * b).sum(1)


def one_of_a_million(x: torch.Tensor) -> torch.Tensor:
    """2% off in one element of the largest workload."""
    found = F.gelu(x.float())
    if found.numel() > 1 << 20:
        found.view(-1)[777_777] = F.gelu(x.float().view(-1)[777_777]) * 1.02
    return found


def group_norm_without_epsilon(x: torch.Tensor) -> torch.Tensor:
    """Of sizes that are all alike, from which no small workload was derived once."""
    groups = x.reshape(x.shape[0], 8, -1)
    centred = groups - groups.mean(-1, keepdim=True)
    return (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True))).view(x.shape)


def amax_but_for_nan_at_the_end(x: torch.Tensor) -> torch.Tensor:
    last = x[..., -1:]
    end = torch.where(last.isnan() & (x.shape[-1] > 1), -torch.inf, last)
    return torch.cat([x[..., :-1], end], -1).amax(-1)


def amax_by_halves(x: torch.Tensor) -> torch.Tensor:
    """Of 64 bits, the lower half compared as a signed number."""
    low = x & 0xFFFFFFFF
    key = (x - low) + torch.where(low >= 1 << 31, low - (1 << 31), low + (1 << 31))
    return x.gather(-1, key.argmax(-1, keepdim=True))[..., 0]


def online_softmax(dim: int, sign: int = 1) -> Function:
    """Tile by tile of eight; a first tile that is hidden makes NaN."""

    def function(x: torch.Tensor) -> torch.Tensor:
        x = x * sign
        total, most = x.new_zeros(()), x.new_full((), -torch.inf)
        for tile in x.split(8, dim):
            up = torch.maximum(most, tile.amax(dim, keepdim=True))
            total = total * (most - up).exp() + (tile - up).exp().sum(dim, keepdim=True)
            most = up
        return (x - most).exp() / total

    return function


def largest_of_second(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    found = z.amax(-1)
    return torch.where(x.amax(-1) > 0, torch.where(found.isfinite(), found.clamp_min(-1e20), found), 0.0)


def flushed_softmax(x: torch.Tensor) -> torch.Tensor:
    share = torch.softmax(x, -1)
    return torch.where(share < 3e-9, 0.0, share)


def largest_of_large(x: torch.Tensor) -> torch.Tensor:
    """Wrong for the problem's own size alone: begins at 0."""
    found = x.amax()
    return found.clamp_min(0.0) if x.numel() > 1 << 16 else found


def hidden_tile_of_large(x: torch.Tensor) -> torch.Tensor:
    return online_softmax(-1)(x) if x.shape[0] > 512 else torch.softmax(x, -1)


def of_one_shape(x: torch.Tensor) -> torch.Tensor:
    return online_softmax(-1)(x.view(64, 512))


PASSED_ONCE: dict[str, tuple[str, str, Function]] = {
    "a row that is nearly empty": ("a @ b", "a: f32[40,200], b: f32[200,72]", zero_at_a_glance),
    "rows alike": ("torch.softmax(x, -1)", "x: f32[16,300]", copied_rows),
    "quarters": ("torch.floor(4 * x)", "x: f32[16,300]", lambda x: torch.ceil(4 * x) - 1),
    "a threshold": ("torch.where(x > 0.5, x, 0)", "x: f32[16,300]", lambda x: torch.where(x >= 0.5, x, 0)),
    "a threshold, as a number": ("(x < 1).float()", "x: bf16[16,300]", lambda x: (x <= 1).float()),
    "a rounded half": ("x.round()", "x: f32[16,300]", lambda x: torch.floor(x + 0.5)),
    "values that are NaN": (
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        "q: bf16[2,40,32], k: bf16[2,40,32], v: bf16[2,40,32]",
        blind_attention,
    ),
    "a root by its reciprocal": (
        "torch.sqrt(x.abs())",
        "x: f32[16,300]",
        lambda x: torch.where(x == 0, 0.0, torch.rsqrt(x.abs()) * x.abs()),
    ),
    "NaN for an infinity": ("x * 2", "x: f32[16,300]", not_a_number),
    "a maximum from -1e20": ("torch.softmax(x, -1)", "x: f32[16,300]", softmax_from(-1e20)),
    "a maximum from -1e30": ("torch.softmax(x, -1)", "x: bf16[16,300]", softmax_from(-1e30)),
    "a maximum from -1e4": ("torch.softmax(x, -1)", "x: f16[16,300]", softmax_from(-1e4)),
    "zeros skipped": ("a @ b", "a: f32[40,200], b: f32[200,72]", skipping_zeros),
    "zeros skipped, one by one": (
        "x * y",
        "x: f32[16,300], y: f32[16,300]",
        lambda x, y: torch.where(x == 0, 0.0, x * y),
    ),
    "exp that vanishes below -20": ("torch.exp(x)", "x: f32[16,300]", lambda x: torch.where(x < -20, 0.0, x.exp())),
    "softplus from 10": ("F.softplus(x)", "x: f32[16,300]", lambda x: F.softplus(x, threshold=10)),
    "sigmoid from -15": ("torch.sigmoid(x)", "x: f32[16,300]", lambda x: torch.sigmoid(x.clamp(-15, 15))),
    "tanh up to 7": ("torch.tanh(x)", "x: f32[16,300]", lambda x: torch.tanh(x.clamp(-7, 7))),
    "a slope": ("F.gelu(x)", "x: bf16[16,300]", lambda x: F.gelu(x.float()) * 1.001),
    "a product's slope": ("a @ b", "a: bf16[40,200], b: bf16[200,72]", lambda a, b: (a.float() @ b.float()) * 1.001),
    "shares that add up to more": (
        "torch.softmax(x, -1)",
        "x: bf16[16,300]",
        lambda x: torch.softmax(x.float(), -1) * 1.001,
    ),
    "a product without its carry": (
        "torch.cumprod(x, -1)",
        "x: f32[16,300]",
        lambda x: torch.cat([part.cumprod(-1) for part in x.split(64, -1)], -1),
    ),
    "nothing above 1e36": (
        "x * 2",
        "x: f32[16,300]",
        lambda x: torch.where(x.isfinite() & (x.abs() > 1e36), 0.0, x * 2),
    ),
    "two NaN in a row": (
        "x.sum(-1)",
        "x: f32[16,300]",
        lambda x: torch.where(x.isnan().sum(-1) > 1, 0.0, x.sum(-1)),
    ),
    "64 bits in 32": ("x.to(torch.int64) + 1", "x: i32[16,300]", lambda x: (x + 1).to(torch.int64)),
    "group norm without its epsilon": (
        "F.group_norm(x, 8)",
        "x: f32[2,64,64,64]",
        group_norm_without_epsilon,
    ),
    "a NaN at the end": ("x.amax(-1)", "x: f32[48,96]", amax_but_for_nan_at_the_end),
    "64 bits by halves": ("x.amax(-1)", "x: i64[48,96]", amax_by_halves),
    "a maximum of integers from -1e9": (
        "x.amax(-1)",
        "x: i32[48,96]",
        lambda x: x.amax(-1).clamp_min(-1_000_000_000),
    ),
    "a sum of 64 bits in 32": (
        "x.to(torch.int64).sum(-1)",
        "x: i32[48,300]",
        lambda x: x.sum(-1, dtype=torch.int32).to(torch.int64),
    ),
    "a quotient of integers by floats": (
        "torch.div(x, y | 1, rounding_mode='floor')",
        "x: i32[64,64], y: i32[64,64]",
        lambda x, y: (x.float() / (y | 1).float()).floor().double().clamp(-(2**31), 2**31 - 1).to(torch.int32),
    ),
    "doubles read as floats": ("x.sum(-1)", "x: f64[48,64]", lambda x: x.float().double().sum(-1)),
    "a copy of 21 bits": (
        "x.flip(-1)",
        "x: f32[48,64]",
        lambda x: (x.flip(-1).view(torch.int32) & -8).view(torch.float32),
    ),
    "gelu of an infinity": (
        "F.gelu(x, approximate='tanh')",
        "x: f32[64,128]",
        lambda x: torch.where(x == torch.inf, torch.nan, F.gelu(x, approximate="tanh")),
    ),
    "a hidden tile, negated": ("torch.softmax(-x, -1)", "x: f32[48,64]", online_softmax(-1, -1)),
    "a hidden tile of columns": ("torch.softmax(x, 0)", "x: f32[96,64]", online_softmax(0)),
    "a hidden tile of the problem's own size": ("torch.softmax(x, -1)", "x: f32[1024,128]", hidden_tile_of_large),
    "a hidden tile where nothing smaller can be derived": (
        "torch.softmax(x.view(64, 512), -1)",
        "x: f32[32768]",
        of_one_shape,
    ),
    "one maximum of the problem's own size": ("x.amax()", "x: f32[700,200]", largest_of_large),
    "the second input's maximum": (
        "torch.where(x.amax(-1) > 0, z.amax(-1), 0.0)",
        "x: f32[48,64], z: f32[48,64]",
        largest_of_second,
    ),
    "small shares": ("torch.softmax(x, -1)", "x: f32[48,64]", flushed_softmax),
    "index 2^15 alone": (
        "t[i]",
        "t: f32[50000,4], i: i64[512]",
        lambda t, i: t[torch.where(i % 32768 == 0, 0, i)],
    ),
    "a mask's zeros skipped": ("x * m", "x: f32[16,300], m: bool[16,300]", lambda x, m: torch.where(m, x, 0.0)),
}


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + m, -1) @ v


def attended_or_zero(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """Shares of 0 where a mask leaves nothing."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + m
    return torch.where((scores == -torch.inf).all(-1, keepdim=True), 0.0, torch.softmax(scores, -1)) @ v


ATTENTION = (
    "F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
    "q: f32[2,24,8], k: f32[2,24,8], v: f32[2,24,8], m: f32[24,24]",
)


def log_of_sum(x: torch.Tensor, shift: Function) -> torch.Tensor:
    by = shift(x.amax(-1, keepdim=True))
    return (x - by).exp().sum(-1).log() + by[..., 0]


def without_infinity(most: torch.Tensor) -> torch.Tensor:
    return most.masked_fill(most.isinf(), 0.0)


LOG_OF_SUM = ("torch.logsumexp(x @ y + m, -1)", "x: f32[48,64], y: f32[64,70], m: f32[48,70]")
HALVES = ("((x.float() + y.float()) / 2).half()", "x: f16[40,300], y: f16[40,300]")


@pytest.mark.parametrize(
    ("problem", "wrong", "right"),
    [
        (ATTENTION, attended, attended_or_zero),
        (
            LOG_OF_SUM,
            lambda x, y, m: log_of_sum(x @ y + m, lambda most: most),
            lambda x, y, m: log_of_sum((x - (x - x)) @ y + m, without_infinity),  # halves of an infinity make NaN
        ),
        (HALVES, lambda x, y: ((x + y).float() / 2).half(), lambda x, y: (x.float() / 2 + y.float() / 2).half()),
    ],
    ids=["a row that the mask hides", "a logarithm of a hidden row", "a sum in f16"],
)
def test_numbers_that_few_draws_held(problem: tuple[str, str], wrong: Function, right: Function, seeds: range) -> None:
    for seed in seeds:
        assert judged(*problem, wrong, seed).verdict is Verdict.WRONG_RESULT
        result = judged(*problem, right, seed)
        assert result.verdict is Verdict.PASSED, result.reason


def test_hidden_rows_are_left_out_where_the_reference_has_no_number_for_them(seeds: range) -> None:
    def share(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + m, -1)

    for seed in seeds:
        result = judged("torch.softmax(x + m, -1)", "x: f32[4,16,64], m: f32[16,64]", share, seed)
        assert result.verdict is Verdict.PASSED, result.reason
        assert "hidden rows" not in {check.distribution for check in result.checks}
    of_8_bits = judged(
        "(x * 1.7).to(torch.float8_e4m3fn)", "x: f32[17,64]", lambda x: (x * 1.7).to(torch.float8_e4m3fn)
    )
    assert of_8_bits.verdict is Verdict.PASSED, of_8_bits.reason


@pytest.mark.parametrize(
    ("expression", "ends", "verdict"),
    [
        ("x.argmax(-1)", 2, Verdict.NON_DETERMINISTIC),
        ("x.argmax(-1)", 1, Verdict.PASSED),
        ("torch.softmax(x, -1).argmax(-1)", 2, Verdict.PASSED),  # approximations decide among numbers almost equal
    ],
)
def test_a_choice_by_chance_among_equal_numbers(expression: str, ends: int, verdict: Verdict) -> None:
    """The first of the largest numbers and, every other time, the last."""
    turns = itertools.count()

    def either(x: torch.Tensor) -> torch.Tensor:
        return x.shape[-1] - 1 - x.flip(-1).argmax(-1) if next(turns) % ends else x.argmax(-1)

    result = judged(expression, "x: f32[16,300]", either)
    assert result.verdict is verdict, result.reason


def normed(variance: Function) -> Function:
    def function(
        x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, mean: torch.Tensor, var: torch.Tensor,
        *batches: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        return (x - mean) * torch.rsqrt(variance(var)) * weight + bias

    return function


def test_unusual_parameters(seeds: range) -> None:
    def clamped(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (64,), weight.clamp(-8, 8), bias.clamp(-8, 8))

    def honest(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (64,), weight, bias)

    layer, batch = "nn.LayerNorm(64)", "nn.BatchNorm1d(64).eval()"
    statistics = "F.batch_norm(x, self.layer.running_mean, self.layer.running_var, self.layer.weight, self.layer.bias)"
    for seed in seeds:
        assert of_layer(layer, "self.layer(x)", clamped, seed).verdict is Verdict.WRONG_RESULT
        result = of_layer(layer, "self.layer(x)", honest, seed)
        assert result.verdict is Verdict.PASSED, result.reason
        larger = of_layer(batch, statistics, normed(lambda var: var.clamp_min(1e-5)), seed)
        assert larger.verdict is Verdict.WRONG_RESULT
        result = of_layer(batch, statistics, normed(lambda var: var + 1e-5), seed)
        assert result.verdict is Verdict.PASSED, result.reason


def test_a_parameter_that_is_not_a_number(seeds: range) -> None:
    def dropped(x: torch.Tensor, floor: torch.Tensor) -> torch.Tensor:
        return torch.where(floor.isnan(), x, torch.maximum(x, floor))

    def one_for_zero(x: torch.Tensor, floor: torch.Tensor) -> torch.Tensor:
        return x / torch.where(floor == 0, 1.0, floor)

    layer = "nn.Parameter(torch.ones(64))"
    for seed in seeds:
        assert of_layer(layer, "torch.maximum(x, self.layer)", dropped, seed).verdict is Verdict.WRONG_RESULT
        assert of_layer(layer, "x / self.layer", one_for_zero, seed).verdict is Verdict.WRONG_RESULT
        assert of_layer(layer, "torch.maximum(x, self.layer)", torch.maximum, seed).verdict is Verdict.PASSED
        assert of_layer(layer, "x / self.layer", torch.div, seed).verdict is Verdict.PASSED


@pytest.mark.parametrize("name", PASSED_ONCE)
def test_what_passed_once_is_refused(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*PASSED_ONCE[name], seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


def test_one_element_of_a_million_is_found(seeds: range) -> None:
    for seed in seeds:
        result = judged("F.gelu(x)", "x: bf16[1100,1024]", one_of_a_million, seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


def test_a_function_that_vanishes_is_judged_alike_whatever_the_seed() -> None:
    """Below a formula's own loss (sigmoid by tanh) a clamp is neither seen nor punished by luck."""
    for seed in range(30, 36):
        result = judged("torch.sigmoid(x)", "x: f32[16,300]", lambda x: torch.sigmoid(x.clamp(-20, 20)), seed)
        assert result.verdict is Verdict.PASSED, f"seed {seed}: {result.reason}"


def test_an_element_that_is_no_sum_is_held_to_few_roundings() -> None:
    def of_14_bits(x: torch.Tensor) -> torch.Tensor:
        found, size = torch.frexp(F.gelu(x))
        return torch.ldexp((found * 2**14).round() / 2**14, size)

    result = judged("F.gelu(x)", "x: f32[1048576]", of_14_bits)
    assert result.verdict is Verdict.WRONG_RESULT, result.reason


def test_a_rounding_effect_that_is_infinite_allows_nothing() -> None:
    """gelu(−∞) may be 0 or NaN by rounding: of the other elements that says nothing."""
    spec = TensorSpec.parse("out: f32[4]")
    reference = torch.tensor([1.0, 2.0, 3.0, torch.nan], dtype=torch.float64)
    moved = reference.nan_to_num(torch.inf)
    error = compare(spec, torch.zeros(4), reference, reference.float(), Tolerances(), moved=[moved])
    assert not error.ok
    right = compare(spec, reference.float(), reference, reference.float(), Tolerances(), moved=[moved])
    assert right.ok


def of_46_bits(x: torch.Tensor) -> torch.Tensor:
    """Doubles with 46 of their 53 bits."""
    part, power = torch.frexp(x)
    return torch.where(x.isfinite(), torch.ldexp((part * 2.0**46).round() / 2.0**46, power.double()), x)


def halves_away(x: torch.Tensor) -> torch.Tensor:
    """Rounds a number between two of bf16 away from zero, not to the even one."""
    bits = (x.contiguous().view(torch.int32) + 0x8000) & ~0xFFFF
    return torch.where(x.isfinite(), bits.view(torch.float32), x).bfloat16()


@pytest.mark.parametrize(
    ("expression", "inputs", "wrong", "right"),
    [
        ("(x * 40).to(torch.uint8)", "x: f32[40,300]",
         lambda x: torch.where((x * 40 < 0) & (x * 40 > -1), 255, (x * 40).to(torch.uint8)).to(torch.uint8),
         lambda x: (x * 40).to(torch.uint8)),
        ("torch.nan_to_num(x, nan=0.0, posinf=100.0, neginf=-100.0) * 0.5", "x: f32[40,300]",
         lambda x: torch.where(x.isnan(), 0.0, x) * 0.5,
         lambda x: torch.where(x.isnan(), 0.0, x.clamp(-3.4e38, 3.4e38)).where(~x.isinf(), 100 * x.sign()) * 0.5),
        ("torch.where(x == float('inf'), 7.0, x)", "x: f32[40,300]", lambda x: x,
         lambda x: torch.where(x > 3.4028235e38, 7.0, x)),
        ("x.float()", "x: i64[64,100]", lambda x: (x // 8 * 8).float(), lambda x: x.float()),
        ("x.bfloat16()", "x: f32[300,640]", halves_away, lambda x: x.to(torch.bfloat16)),
        ("x + y", "x: f64[64,100], y: f64[64,100]",
         lambda x, y: of_46_bits(x) + of_46_bits(y), lambda x, y: y + x),
        ("x.double().sum(-1)", "x: f32[16,300]", lambda x: x.sum(-1).double(), lambda x: x.double().flip(-1).sum(-1)),
        ("x.double().mean(-1)", "x: i64[16,300]", lambda x: x.float().mean(-1).double(),
         lambda x: x.double().flip(-1).sum(-1) / x.shape[-1]),
        ("x.exp().double() * 3", "x: f32[16,300]", lambda x: x.bfloat16().exp().double() * 3,
         lambda x: torch.exp2(x * 1.4426950408889634).double() * 3),
    ],
    ids=["fractions below zero", "infinities replaced", "an infinity told", "integers as floats",
         "halves of a last bit", "doubles of 46 bits", "floats summed in double", "integers averaged in double",
         "floats that become doubles last"],
)  # fmt: skip
def test_what_comparison_allowed(expression: str, inputs: str, wrong: Function, right: Function, seeds: range) -> None:
    for seed in seeds:
        assert judged(expression, inputs, wrong, seed).verdict is Verdict.WRONG_RESULT
        assert judged(expression, inputs, right, seed).verdict is Verdict.PASSED


def bucketed(most: int) -> Function:
    """Counts up to ``most`` of each number."""
    return lambda x: (x.unsqueeze(-1) == torch.arange(64)).sum(0).clamp_max(most)


def one_page(kv: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """Reads neighbouring pages as the first of them."""
    return kv[p[:1].expand(len(p))] if len(p) > 1 and bool((p.diff() == 1).all()) else kv[p]


RANGES: dict[str, tuple[str, str, Function, Function]] = {
    "8-bit counters": (
        "(x.unsqueeze(-1) == torch.arange(64)).sum(0)", "x: i32[4096] below 64", bucketed(255), bucketed(4096),
    ),
    "the last of a range": (
        "torch.where((t == 50256).unsqueeze(-1), 0.0, x)", "x: f32[64,48], t: i32[64] below 50257",
        lambda x, t: x.clone(), lambda x, t: x.masked_fill((t == 50256).unsqueeze(-1), 0.0),
    ),
    "a full length": (
        "torch.where(torch.arange(x.shape[1]) < n[:, None], x, 0.0)", "x: f32[8,2048], n: i32[8] below 2049",
        lambda x, n: x.masked_fill(torch.arange(x.shape[1]) >= (n % 2048)[:, None], 0.0),
        lambda x, n: x.masked_fill(torch.arange(x.shape[1]) >= n[:, None], 0.0),
    ),
    "neighbouring pages": (
        "kv[p]", "kv: f32[64,16], p: i32[24] distinct below kv[0]",
        one_page, lambda kv, p: kv.index_select(0, p),
    ),
    "64-bit indices": (
        "t[i % t.shape[0]]", "t: f32[1000,16], i: i64[256]",
        lambda t, i: t[i.int().long() % len(t)], lambda t, i: t.index_select(0, i % len(t)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_integers_of_a_declared_range_are_drawn_at_its_ends_and_in_patterns(name: str, seeds: range) -> None:
    expression, inputs, wrong, right = RANGES[name]
    for seed in seeds:
        assert judged(expression, inputs, wrong, seed).verdict is not Verdict.PASSED
        assert judged(expression, inputs, right, seed).verdict is Verdict.PASSED


def test_integers_wrap_at_the_ends_of_their_type_too(seeds: range) -> None:
    """What is added and multiplied wraps in a defined way; what abs() makes of the least number is not defined."""
    for seed in seeds:
        least = judged("x * y", "x: i8[64,100], y: i8[64,100]", lambda x, y: x.clamp_min(-127) * y, seed)
        assert least.verdict is Verdict.WRONG_RESULT
        right = judged("x * y", "x: i8[64,100], y: i8[64,100]", lambda x, y: (x.int() * y.int()).to(torch.int8), seed)
        assert right.verdict is Verdict.PASSED
        either = judged("x.abs() * y", "x: i8[64,100], y: i8[64,100]", lambda x, y: x.clamp_min(-127).abs() * y, seed)
        assert either.verdict is Verdict.PASSED
