"""PyTorch's own error may be small by luck; a kernel that rounds as often as PyTorch does is not wrong for that."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge.compare.distances import rms
from cutegen_lab.judge.compare.outputs import OutputComparison
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.reference_device import ReferenceDevice
from cutegen_lab.judge.rounding.samples import rerounded_results
from cutegen_lab.problems import Reference, read_text

SOURCE = "def reference(x, a, s):\n    return F.layer_norm(F.linear(x, a) + s, (s.shape[-1],)).mean(-1)\n"
PROBLEM = read_text(SOURCE, name="means", inputs_text="x: bf16[1,256], a: bf16[8,256], s: bf16[1,8]")
SEEDS = range(40)  # where PyTorch's own error was taken as it came, four of them had an honest kernel called wrong


def means(x: torch.Tensor, a: torch.Tensor, s: torch.Tensor, between: torch.dtype) -> torch.Tensor:
    """As two kernels may do it: in float64, handing on sums and norms as ``between``."""
    total = (F.linear(x.double(), a.double()) + s.double()).to(between).double()
    return F.layer_norm(total, (s.shape[-1],)).to(between).double().mean(-1).to(torch.bfloat16)


def wrong(between: torch.dtype) -> int:
    workload, reference = PROBLEM.workload, Reference(PROBLEM)
    found = 0
    for seed in SEEDS:
        answers = OutputComparison(reference, workload, PROBLEM.tolerances, ReferenceDevice(EmulatorDevice(), workload))
        inputs = draw(workload, "normal", seed)
        check = WorkloadCheck(workload.name, "normal", seed, Verdict.PASSED)
        found += not all(e.ok for e in answers.errors(inputs, [means(*inputs, between)], check))
    return found


def test_one_that_hands_on_bf16_as_pytorch_does_passes() -> None:
    assert wrong(torch.bfloat16) == 0


def test_one_that_hands_on_less_does_not() -> None:
    assert wrong(torch.float8_e5m2) > len(SEEDS) // 2


@pytest.mark.parametrize(
    ("expression", "same"), [("x.exp()", True), ("x.exp().sum(-1)", False), ("x[:, :4].sin().T * 2", False)]
)
def test_what_nobody_uses_is_not_rounded_again(expression: str, same: bool) -> None:
    problem = read_text(f"def reference(x):\n    return {expression}\n", name="p", inputs_text="x: bf16[8,8]")
    reference, inputs = Reference(problem), draw(problem.workload, "normal", 3)
    results = [result for (result,) in rerounded_results(reference, inputs, 1)]
    assert all(torch.equal(result, reference.run(inputs)[0]) for result in results) == same


def test_an_infinite_sum_is_not_rounded() -> None:
    """A key of infinities whose score is −∞ has no share, however often the other shares are rounded."""
    problem = read_text(
        "def reference(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)\n",
        name="p", inputs_text="q: f16[4,8], k: f16[32,8], v: f16[32,8]",
    )  # fmt: skip
    reference, (q, k, v) = Reference(problem), draw(problem.workload, "normal", 3)
    k[5] = -torch.inf * q[0].sign()
    q = q[:1].expand(4, 8)
    wanted, own = reference.run_float64([q, k, v])[0], reference.run([q, k, v])[0]
    assert bool(own.isfinite().all())
    results = [result for (result,) in rerounded_results(reference, [q, k, v], 1)]
    assert all(bool(result.isfinite().all()) for result in results)
    assert all(rms(result - wanted) > 1e-4 * rms(wanted) for result in results)


@pytest.mark.parametrize(("size", "ok"), [(1e-4, True), (3.0, False)])
def test_infinite_times_next_to_nothing_has_either_sign(size: float, ok: bool) -> None:
    problem = read_text("def reference(x, s):\n    return x * s\n", name="p", inputs_text="x: f32[4,8], s: f32[1]")
    x, s = torch.linspace(1, 2, 32).reshape(4, 8), torch.tensor([torch.inf])
    x[2, 3] = size
    got = x * s
    got[2, 3] = -torch.inf  # as where the sum that x is had been rounded otherwise
    workload = problem.workload
    answers = OutputComparison(
        Reference(problem), workload, problem.tolerances, ReferenceDevice(EmulatorDevice(), workload)
    )
    check = WorkloadCheck(workload.name, "infinity", 1, Verdict.PASSED)
    assert all(e.ok for e in answers.errors([x, s], [got], check)) == ok
