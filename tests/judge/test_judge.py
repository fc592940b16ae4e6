"""The judge tells right from wrong, and says how."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from typing import ClassVar

import pytest
import torch

from cutegen_lab.core.artifact import Build, Launch, Relocation
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.stopwatch import ReferenceKind
from cutegen_lab.core.trial import CheckResult, Profile, Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.execution.plan import validate_plan
from cutegen_lab.judge.timing.interleaved import Effort
from cutegen_lab.problems import read_text
from tests.judge.torch_device import Kernel, TorchDevice, artifact_for

SOFTMAX = "def reference(x):\n    return torch.softmax(x, dim=-1)\n"


def problem(dtype: str = "bf16", source: str = SOFTMAX, inputs: str = "x: {}[64,512]") -> Problem:
    return read_text(source, inputs_text=inputs.format(dtype))


def judged(task: Problem, kernel: Kernel) -> CheckResult:
    device, seeds = TorchDevice(kernel), itertools.count(1)
    judge = StandardJudge(lambda: next(seeds))
    return judge.check(task, artifact_for(task, device), device, lambda line: None, threading.Event())


def writes(function: Callable[..., torch.Tensor]) -> Kernel:
    """A kernel that writes ``function(inputs)`` to its one output."""

    def kernel(*tensors: torch.Tensor) -> None:
        tensors[-1].copy_(function(*tensors[:-1]))

    return kernel


def softmax(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(torch.softmax(x.float(), -1))


@pytest.mark.parametrize(("references", "ahead"), [(("eager", "compile"), True), (("eager",), False)])
def test_torch_compile_has_the_time_of_the_checks_where_it_is_timed(
    references: tuple[ReferenceKind, ...], ahead: bool
) -> None:
    class Timed(TorchDevice):
        conditions: ClassVar[dict[str, str]] = {}
        prepared: ClassVar[list[Problem]] = []

        def prepare(self, problem: Problem) -> None:
            self.prepared.append(problem)

        def stopwatch(self, *arguments: object) -> Fault:
            raise AssertionError("nothing is timed")

    task, device, judge = problem(), Timed(softmax), StandardJudge()
    judge.effort = Effort(references=references)
    artifact = artifact_for(task, device)
    assert judge.check(task, artifact, device, lambda line: None, threading.Event()).verdict is Verdict.PASSED
    assert device.prepared == [task] * ahead


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_a_right_kernel_passes_with_its_evidence(dtype: str) -> None:
    result = judged(problem(dtype), softmax)
    assert result.verdict is Verdict.PASSED, result.reason
    assert {c.workload for c in result.checks} >= {"main", "prime", "one_row"}
    assert {c.distribution for c in result.checks} >= {"normal", "large", "zeros"}
    assert len({c.seed for c in result.checks}) == len(result.checks)
    worst = result.worst()
    assert worst is not None and 0 < worst.norm <= worst.limit_norm


def test_one_wrong_element_is_found_and_named() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        softmax(x, out)
        out[-1, -1] += 1

    result = judged(problem(), kernel)
    assert result.verdict is Verdict.WRONG_RESULT
    assert "worst at out[2, 511]" in result.reason


def test_half_written_output() -> None:
    def half(x: torch.Tensor, out: torch.Tensor) -> None:
        rows = (len(out) + 1) // 2
        out[:rows] = torch.softmax(x.float(), -1)[:rows]

    result = judged(problem(), half)
    assert result.verdict is Verdict.UNWRITTEN_OUTPUT
    assert "were never written" in result.reason


def test_unwritten_integer_output_is_found_by_the_second_poison() -> None:
    task = problem(source="def reference(x):\n    return x.argmax(-1)\n")
    assert judged(task, lambda x, out: None).verdict is Verdict.UNWRITTEN_OUTPUT


def test_modified_input() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        softmax(x, out)
        x[0, 0] = 0

    result = judged(problem(), kernel)
    assert result.verdict is Verdict.INPUT_MODIFIED and "'x'" in result.reason


def test_reading_stale_output_differs_between_poisons() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        stale = out.view(torch.uint8).reshape(-1)[0].item()
        softmax(x, out)
        out += 1e-3 * stale / 255

    assert judged(problem("f32"), kernel).verdict is Verdict.NON_DETERMINISTIC


def test_non_determinism_is_a_verdict_unless_declared() -> None:
    generator = torch.Generator().manual_seed(0)

    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        noise = torch.rand(x.shape, generator=generator) * 1e-7
        out.copy_(torch.softmax(x, -1) * (1 + noise))

    strict = problem("f32")
    assert judged(strict, kernel).verdict is Verdict.NON_DETERMINISTIC
    lenient = read_text(SOFTMAX, inputs_text="x: f32[64,512]", deterministic=False)
    assert judged(lenient, kernel).verdict is Verdict.PASSED


def test_lower_precision_than_the_problems_fails() -> None:
    result = judged(problem("f32"), writes(lambda x: torch.softmax(x.bfloat16(), -1)))
    assert result.verdict is Verdict.WRONG_RESULT
    assert "PyTorch" in result.reason


def test_softmax_without_max_subtraction_fails_on_large_inputs() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        e = x.float().exp()
        out.copy_(e / e.sum(-1, keepdim=True))

    result = judged(problem(), kernel)
    assert result.verdict is Verdict.WRONG_RESULT and "got nan" in result.reason


def test_nan_must_stand_where_the_reference_has_it() -> None:
    task = problem("f32", "def reference(x):\n    return x / x.norm(dim=-1, keepdim=True)\n")
    honest = judged(task, writes(lambda x: x / x.norm(dim=-1, keepdim=True)))
    assert honest.verdict is Verdict.PASSED, honest.reason
    hiding = judged(task, writes(lambda x: (x / x.norm(dim=-1, keepdim=True)).nan_to_num()))
    assert hiding.verdict is Verdict.WRONG_RESULT and "zeros" in hiding.reason


def test_integers_are_compared_exactly() -> None:
    task = problem(source="def reference(x):\n    return x.argmax(-1)\n")
    assert judged(task, writes(lambda x: x.argmax(-1))).verdict is Verdict.PASSED
    off = judged(task, writes(lambda x: x.argmax(-1).clamp(max=255)))
    assert off.verdict is Verdict.WRONG_RESULT


def test_integers_that_follow_from_rounded_floats_may_be_pytorchs_own() -> None:
    task = problem("bf16", "def reference(x):\n    return (x * 1.7 + 0.3) > 0.5\n")
    assert judged(task, writes(lambda x: (x * 1.7 + 0.3) > 0.5)).verdict is Verdict.PASSED
    assert judged(task, writes(lambda x: (x * 1.7 + 0.3) > 0.6)).verdict is Verdict.WRONG_RESULT


def test_one_accumulator_over_a_long_sum_is_honest_and_a_shorter_mantissa_is_not() -> None:
    task = problem("f32", "def reference(x):\n    return x.sum(0)\n", "x: {}[16384,8]")

    def in_order(x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x[0])
        for row in x:
            total += row
        return total

    kept = judged(task, writes(in_order))
    assert kept.verdict is Verdict.PASSED, kept.reason
    tf32 = judged(task, writes(lambda x: ((x.view(torch.int32) + 4096) & ~8191).view(torch.float32).sum(0)))
    assert tf32.verdict is Verdict.WRONG_RESULT


def test_float64_computed_in_float32_fails() -> None:
    task = problem("f64", "def reference(x):\n    return x * 0.1\n")
    assert judged(task, writes(lambda x: x * 0.1)).verdict is Verdict.PASSED
    assert judged(task, writes(lambda x: (x.float() * 0.1).double())).verdict is Verdict.WRONG_RESULT


def test_a_masks_fill_hides_no_error_beside_it() -> None:
    task = problem("f32", "def reference(x):\n    return x.masked_fill(x > 0.5, torch.finfo(x.dtype).min)\n")
    assert judged(task, writes(lambda x: x.masked_fill(x > 0.5, torch.finfo(x.dtype).min))).verdict is Verdict.PASSED
    beside = judged(task, writes(lambda x: (x * 1.01).masked_fill(x > 0.5, torch.finfo(x.dtype).min)))
    assert beside.verdict is Verdict.WRONG_RESULT
    fill = judged(task, writes(lambda x: x.masked_fill(x > 0.5, -3e38)))
    assert fill.verdict is Verdict.WRONG_RESULT


def test_a_fault_is_the_verdict() -> None:
    fault = Fault(Verdict.OUT_OF_BOUNDS, "load at 0x10", line=12, block=(0, 0, 0), thread=(3, 0, 0))
    result = judged(problem(), lambda x, out: fault)
    assert result.verdict is Verdict.OUT_OF_BOUNDS
    assert "line 12" in result.reason and "thread (3, 0, 0)" in result.reason


def test_model_parameters_are_never_at_their_initial_values() -> None:
    source = """
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)
    def forward(self, x):
        return self.norm(x)
def get_inputs():
    return [torch.rand(32, 64)]
def get_init_inputs():
    return [64]
"""
    task = read_text(source)

    def forgets_weight_and_bias(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(torch.nn.functional.layer_norm(x, (64,)))

    def honest(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(torch.nn.functional.layer_norm(x, (64,), w, b))

    assert judged(task, honest).verdict is Verdict.PASSED
    assert judged(task, forgets_weight_and_bias).verdict is Verdict.WRONG_RESULT


def test_cancel_ends_a_check() -> None:
    device, cancel = TorchDevice(softmax), threading.Event()
    cancel.set()
    task = problem()
    with pytest.raises(Cancelled):
        StandardJudge().check(task, artifact_for(task, device), device, lambda line: None, cancel)


def test_time_is_asked_of_the_device_and_keeps_its_label() -> None:
    device, task = TorchDevice(softmax), problem()
    timing, _ = StandardJudge().time(
        task, artifact_for(task, device), device, GPUS["H200"], lambda line: None, threading.Event()
    )
    assert isinstance(timing, Timing) and timing.kind == "predicted"


def test_a_judge_that_has_predicted_may_still_be_sent_to_another_process() -> None:
    device, task, judge = TorchDevice(softmax), problem(), StandardJudge()
    judge.time(task, artifact_for(task, device), device, GPUS["H200"], lambda line: None, threading.Event())
    sent = ForkingPickler.dumps(judge)  # of a tensor it sends no more than where to ask for it, which needs a key
    assert b"torch" not in bytes(sent) and isinstance(ForkingPickler.loads(sent), StandardJudge)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grid": (0, 1, 1)}, "grid"),
        ({"block": (2048, 1, 1)}, "block"),
        ({"block": (64, 32, 1)}, "2048 threads"),
        ({"cluster": (32, 1, 1)}, "cluster of 32"),
        ({"grid": (3, 1, 1), "cluster": (2, 1, 1)}, "multiple of the cluster"),
        ({"dynamic_smem_bytes": 300_000}, "shared memory"),
        ({"attributes": {1: bytes(32)}}, "launch attribute 1 is not one a kernel may set"),  # a window of persisting L2
        ({"attributes": {99: bytes(4)}}, "launch attribute 99"),
        ({"attributes": {2: bytes(8)}}, "has 8 bytes, not 4"),
        ({"attributes": {2: b"\1\0\0\0"}, "grid": (5000, 1, 1)}, "a cooperative grid of 5000 blocks, but only"),
        ({"kernel": "other"}, "does not contain"),
        ({"params": (bytes(8), bytes(4))}, "parameter sizes"),
        ({"relocations": (Relocation(0, 4, 0, 0),)}, "outside parameter 0"),
        ({"relocations": (Relocation(0, 0, 9, 0),)}, "refers to tensor 9"),
        ({"relocations": (Relocation(0, 0, 0, 1 << 40),)}, "bytes into"),
    ],
)
def test_forged_plans_reach_no_device(change: dict[str, object], says: str) -> None:
    from dataclasses import replace

    task = problem()
    build = artifact_for(task, TorchDevice(softmax)).builds["main"]
    launch: Launch = replace(build.plan.launches[0], **change)  # type: ignore[arg-type]
    forged = replace(build, plan=replace(build.plan, launches=(launch,)))
    fault = validate_plan(forged, task.workload.tensors, GPUS["H200"])
    assert fault is not None and fault.verdict is Verdict.INVALID_PLAN and says in fault.message
    assert validate_plan(build, task.workload.tensors, GPUS["H200"]) is None


def test_a_profile_is_the_device_s_own_in_one_schema():
    class Counts(TorchDevice):
        def profile(self, build, buffers, cancel):  # type: ignore[no-untyped-def]
            return Profile("hardware", "memory bandwidth", {"dram_load_bytes": float(len(buffers[0]))})

    task, plain = problem(), TorchDevice(writes(lambda x: torch.softmax(x, -1)))
    counting = Counts(writes(lambda x: torch.softmax(x, -1)))
    judge, artifact = StandardJudge(), artifact_for(task, plain)
    found = judge.profile(task, artifact, counting, lambda line: None, threading.Event())
    assert isinstance(found, Profile) and found.source == "hardware" and found.counters["dram_load_bytes"] > 0
    nothing = judge.profile(task, artifact, plain, lambda line: None, threading.Event())
    assert isinstance(nothing, str) and nothing.startswith("torch counts nothing")


EXP = "def reference(x):\n    return torch.exp(x)\n"


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_results_that_overflow_only_in_float32_are_right(dtype: str) -> None:
    """exp(100) is finite in float64; exp(80) is 5e34, and a hardware exponential is 1e-5 off there."""
    task = problem(dtype, EXP)
    assert judged(task, writes(lambda x: torch.exp(x.float()).to(x.dtype))).verdict is Verdict.PASSED
    near = judged(task, writes(lambda x: torch.exp2(x.float() * 1.4426950408889634).to(x.dtype)))
    assert near.verdict is Verdict.PASSED, near.reason


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: torch.exp(x.float()).clamp(max=1e35),  # finite where infinite, and smaller than it should be
        lambda x: torch.where(x > 75, torch.inf, torch.exp(x)),
        lambda x: torch.exp(x) * torch.where(x > 75, 1.001, 1.0),
    ],
)
def test_large_results_that_are_wrong_are_not(wrong: Callable[[torch.Tensor], torch.Tensor]) -> None:
    results = [judged(problem("f32", EXP), writes(wrong)).verdict for _ in range(3)]
    assert Verdict.WRONG_RESULT in results, results


def served(task: Problem, left_out: tuple[str, ...]) -> CheckResult:
    device, seeds = TorchDevice(softmax), itertools.count(1)
    artifact = artifact_for(task, device)
    builds = {name: build for name, build in artifact.builds.items() if name not in left_out}
    artifact = replace(artifact, builds=builds, unserved=left_out)
    return StandardJudge(lambda: next(seeds)).check(task, artifact, device, lambda line: None, threading.Event())


def test_small_workloads_that_constraints_leave_out_are_named_not_checked() -> None:
    result = served(problem(), ("prime", "one_column"))
    assert result.verdict is Verdict.PASSED, result.reason
    assert "not served, by its own constraints: prime, one_column" in result.reason
    assert not {c.workload for c in result.checks} & {"prime", "one_column"}


def test_constraints_that_leave_out_every_small_workload_are_no_candidate() -> None:
    task = problem()
    result = served(task, tuple(w.name for w in task.check_workloads))
    assert result.verdict is Verdict.CONTRACT
    assert "every small workload" in result.reason and "serve at least one" in result.reason


def test_a_single_column_is_no_small_workload_to_judge_by() -> None:
    task = read_text("def reference(x):\n    return x.sum(-1)\n", inputs_text="x: f32[65536,8192]")
    result = served(task, tuple(w.name for w in task.check_workloads if w.name != "one_column"))
    assert result.verdict is Verdict.CONTRACT
    assert "but one_column" in result.reason


def test_what_serves_whole_tiles_alone_is_judged_on_them() -> None:
    task = problem()
    result = served(task, tuple(w.name for w in task.check_workloads if w.name != "aligned"))
    assert result.verdict is Verdict.PASSED, result.reason
    assert {c.workload for c in result.checks} == {"aligned", "main"}


class Asked(TorchDevice):
    """Remembers the FLOPs that it was told of."""

    flops: ClassVar[dict[int, int]] = {}  # by bytes of the tensors

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        self.flops[sum(spec.nbytes for spec in tensors)] = flops
        return super().execute(build, tensors, buffers, cancel, counting, flops)


def test_a_device_is_told_how_much_work_a_workload_is() -> None:
    task = read_text("def reference(a, b):\n    return a @ b\n", inputs_text="a: f32[64,128], b: f32[128,32]")
    device = Asked(writes(torch.matmul))
    result = StandardJudge().check(task, artifact_for(task, device), device, lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED, result.reason
    size = task.workload.nbytes
    assert device.flops[size] == task.flops == 2 * 64 * 128 * 32
    assert all((flops < task.flops) == (other < size) for other, flops in device.flops.items() if other != size)


LARGE = "def reference(x):  # x: f32[9000,9001]\n    return torch.softmax(x, -1)\n"


def test_where_the_device_can_afford_nothing_nobody_is_blamed() -> None:
    task = replace(read_text(LARGE), check_workloads=())
    result = served(task, ())
    assert result.verdict is Verdict.UNSUPPORTED
    assert "constraints" not in result.reason
    for said in ("no small workload could be derived", "the torch cannot afford main (618 MiB", "affordable: 256"):
        assert said in result.reason
    assert "Next: judge it on a GPU, or declare smaller inputs" in result.reason
    product = replace(problem(), check_workloads=(), flops=10**12)
    assert "1e+12 FLOPs (affordable: 2.1e+09)" in served(product, ()).reason


def test_what_constraints_leave_out_and_what_the_device_cannot_afford_are_both_said() -> None:
    task = read_text(LARGE)
    result = served(task, tuple(w.name for w in task.check_workloads))
    assert result.verdict is Verdict.CONTRACT
    for said in ("leave out every small workload (", "cannot afford main", "serve at least one", "judge it on a GPU"):
        assert said in result.reason
