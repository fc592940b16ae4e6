"""A whole timing against a stopwatch of synthetic samples: what is reported, noted, quarantined and refused."""

from __future__ import annotations

import itertools
import json
import math
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from cutegen_lab.core.artifact import Build, LaunchPlan
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import Timed
from cutegen_lab.core.stopwatch import COPY, INCUMBENT
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.timing.confidence import comparison
from cutegen_lab.judge.timing.decisions import CANDIDATE
from cutegen_lab.judge.timing.interleaved import Effort
from cutegen_lab.judge.timing.measured import FLOOR_MARGIN, Job, floor_us, rotated_inputs, time_interleaved
from cutegen_lab.problems import read_text
from cutegen_lab.stores.codec import event_from_json, event_to_json
from tests.judge.fake_stopwatch import CALLS, MAIN_US, FakeStopwatch, hang
from tests.judge.torch_device import TorchDevice, artifact_for

EFFORT = Effort(seconds=5.0, warm_up_seconds=0.0)
BUILD = Build("", "sm_90a", b"", "", (), LaunchPlan(()))
Kernel = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]


def double(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [2 * inputs[0]]


def job(incumbent: bool = False, elements: int = 4096) -> Job:
    problem: Problem = read_text("def reference(x):\n    return 2 * x\n", inputs_text=f"x: f32[{elements}]")
    inputs = [torch.arange(elements, dtype=torch.float32)]

    def answers(given: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], seed: int) -> Fault | None:
        right = torch.equal(outputs[0], 2 * given[0])
        return None if right else Fault(Verdict.WRONG_RESULT, "not twice x")

    return Job(problem, BUILD, BUILD if incumbent else None, inputs, GPUS["H200"], answers)


def timed(watch: FakeStopwatch, work: Job | None = None, effort: Effort = EFFORT) -> Timing | Fault:
    seeds, cancel = itertools.count(1), threading.Event()
    return time_interleaved(work or job(), watch, "cuda:0 Fake", effort, lambda: next(seeds), lambda line: None, cancel)


def timing(watch: FakeStopwatch, work: Job | None = None, effort: Effort = EFFORT) -> Timing:
    found = timed(watch, work, effort)
    assert isinstance(found, Timing), found
    return found


def test_a_timing_says_everything_it_rests_on() -> None:
    watch = FakeStopwatch(double, readings={"sm_clock_mhz": 1980.0, "power_w": 412.0, "throttle": 0.0})
    found = timing(watch)
    assert found.kind == "measured" and found.device == "cuda:0 Fake"
    assert found.time_us == pytest.approx(100, rel=0.002) and found.warm_us == pytest.approx(90, rel=0.002)
    assert found.samples >= 16 and 0 < found.half_width_us < 0.5 and 0 < found.iqr_us < 0.5
    assert found.baselines == pytest.approx({k: v for k, v in MAIN_US.items() if k != "candidate"}, rel=0.002)
    assert {(m.subject, m.flush) for m in found.measurements} == set(
        itertools.product(MAIN_US, ("cold flush", "warm flush", "events flush", "records flush"))
    )
    assert {name: len(taken) for name, taken in found.rounds_us.items()} == dict.fromkeys(MAIN_US, found.samples)
    assert sorted(found.rounds_us["candidate"])[found.samples // 2] == pytest.approx(found.time_us, rel=0.001)
    answers = {c.against: c.answer for c in found.comparisons}
    assert answers == {
        "eager PyTorch": "faster", "torch.compile": "faster", "copy of the compulsory bytes": "slower",
    }  # fmt: skip
    assert found.conditions == {
        "GPU": "none", "SM clock": "1980 MHz", "power": "412 W", "throttle reasons": "none",
    }  # fmt: skip
    assert found.notes == () and watch.closed


def test_outputs_of_random_timed_calls_are_checked_against_their_own_inputs() -> None:
    watch = FakeStopwatch(double)
    timing(watch)
    assert len(watch.fetched) == EFFORT.checks
    assert {name for name, _ in watch.fetched} == {"candidate"}
    assert all(0 <= call < CALLS for _, call in watch.fetched)


def test_a_kernel_that_replays_an_earlier_answer_is_wrong() -> None:
    seen: list[list[torch.Tensor]] = []

    def replays(inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        seen.append(double(inputs))
        return seen[0]

    found = timed(FakeStopwatch(replays))
    assert isinstance(found, Fault) and found.verdict is Verdict.WRONG_RESULT
    assert "timed call" in found.message and "not twice x" in found.message


def test_every_call_of_every_sample_has_inputs_of_its_own() -> None:
    inputs = [torch.arange(1 << 16), torch.arange(1 << 16)]
    specs = [TensorSpec(name, DType.I64, (1 << 16,)) for name in "ab"]
    sets = [rotated_inputs(inputs, specs, seed, call) for seed in (1, 2) for call in range(3)]
    firsts = [int(t[0]) for tensors in sets for t in tensors]
    assert len(set(firsts)) == 12
    assert all(torch.equal(t.sort().values, inputs[0]) for tensors in sets for t in tensors)


@pytest.mark.parametrize(
    ("incumbent_us", "answer"), [(100.0, "same"), (98.0, "slower"), (103.0, "faster"), (101.0, "ambiguous")]
)
def test_the_incumbent_is_timed_in_the_same_rounds(incumbent_us: float, answer: str) -> None:
    watch = FakeStopwatch(double, {**MAIN_US, "incumbent": incumbent_us}, noise=0.002)
    found = timing(watch, job(incumbent=True)).against("incumbent")
    assert found is not None and found.answer == answer
    assert found.better is (answer == "faster")


LARGE = 64 << 10  # elements; a card that is a thousandth of an H200 needs 109 µs for their traffic
SMALL_CARD = FakeStopwatch(double, dram_bytes_per_s=4.8e9, l2_bytes=60 << 10)


def test_a_time_below_the_floor_is_quarantined() -> None:
    work, watch = job(elements=LARGE), SMALL_CARD
    floor = floor_us(work, watch, CALLS)
    kept = (60 << 10) / CALLS
    assert floor == pytest.approx(FLOOR_MARGIN * (8 * LARGE - kept) / 4.8e9 * 1e6)
    slow = dict.fromkeys(MAIN_US, 400.0)
    found = timed(replace(watch, true_us={**slow, "candidate": floor * 0.98}), work)
    assert isinstance(found, Fault) and found.verdict is Verdict.TOO_FAST
    assert "quarantined" in found.message
    assert timing(replace(watch, true_us={**slow, "candidate": floor * 1.02}), work).notes == ()


def test_a_floor_counts_only_what_must_be_read() -> None:
    """A kernel that reads a few rows of a table is not too fast."""
    work, watch = job(elements=LARGE), replace(SMALL_CARD, true_us={**dict.fromkeys(MAIN_US, 400.0), "candidate": 60.0})
    assert isinstance(timed(watch, work), Fault)
    main = work.workload
    inputs = tuple(replace(spec, least_bytes=128) for spec in main.inputs)
    gathers = replace(work, problem=work.problem.with_workloads((replace(main, inputs=inputs),)))
    kept = (60 << 10) / CALLS
    assert floor_us(gathers, SMALL_CARD, CALLS) == pytest.approx(FLOOR_MARGIN * (128 + 4 * LARGE - kept) / 4.8e9 * 1e6)
    assert timing(watch, gathers).time_us == pytest.approx(60.0, rel=0.01)


def test_one_impossible_sample_is_enough() -> None:
    class Once(FakeStopwatch):
        def sample(self, name, mode, count, seed):  # type: ignore[no-untyped-def]
            found = super().sample(name, mode, count, seed)
            once = name == "candidate" and len(self.log) > 80 and not hasattr(self, "done")
            if once:
                self.done = True
                return replace(found, times_us=(1.0,))
            return found

    watch = Once(double, dict.fromkeys(MAIN_US, 400.0), dram_bytes_per_s=4.8e9, l2_bytes=60 << 10)
    found = timed(watch, job(elements=LARGE))
    assert isinstance(found, Fault) and found.verdict is Verdict.TOO_FAST


def test_a_floor_that_pytorch_itself_is_below_is_no_floor() -> None:
    """A reference that reads a few rows of a large table: the bytes that seem compulsory are not."""
    for incumbent in (False, True):  # one that is no faster is timed beside PyTorch after all
        watch = replace(SMALL_CARD, true_us=dict.fromkeys([*MAIN_US, INCUMBENT], 20.0))
        found = timing(watch, job(incumbent, elements=LARGE))
        assert any("was not applied: eager PyTorch is below it too" in note for note in found.notes)


def test_clocks_that_disagree_are_noted() -> None:
    everyone = dict.fromkeys(MAIN_US, 2.0)  # what a pair of events costs
    assert timing(FakeStopwatch(double, single_extra_us=everyone)).notes == ()
    (note,) = timing(FakeStopwatch(double, single_extra_us={**everyone, "candidate": 5.0})).notes
    assert re.search(
        r"between events takes 105(\.\d+)? µs, (3|2\.\d) µs longer .* beyond the (2|1\.9|2\.\d) µs that other",
        note,
    )


def test_what_cupti_recorded_is_a_third_clock() -> None:
    found = timing(FakeStopwatch(double))
    (recorded,) = [m for m in found.measurements if m.subject == "candidate" and m.clock == "records clock"]
    assert recorded.time_us == pytest.approx(99.0, rel=0.01) and recorded.samples == EFFORT.side_rounds
    (note,) = timing(FakeStopwatch(double, between_calls_us={"candidate": 5.0})).notes
    assert re.search(r"by CUPTI's records takes 9[45](\.\d+)? µs, (4|3\.\d|4\.\d) µs shorter than in the graph", note)


def test_without_cupti_the_other_clocks_suffice() -> None:
    found = timing(FakeStopwatch(double, modes=("cold", "warm", "events")))
    assert found.notes == () and all(m.clock != "records clock" for m in found.measurements)
    broken = {("candidate", "records"): Fault(Verdict.DEVICE_ERROR, "RuntimeError: the records hold 3 calls, not 12")}
    assert timing(FakeStopwatch(double, faults=broken)).notes == (
        "CUPTI's records of kernels are not available: RuntimeError: the records hold 3 calls, not 12",
    )
    hangs = timed(FakeStopwatch(double, faults={("candidate", "records"): hang()}))
    assert isinstance(hangs, Fault) and hangs.verdict is Verdict.HANG


def test_doubt_and_throttling_are_noted() -> None:
    watch = FakeStopwatch(double, noise=0.2, readings={"throttle": float(0x4 | 0x1)})
    found = timing(watch, effort=replace(EFFORT, seconds=0.05))
    assert any(re.match(r"candidate: after \d+ rounds the 95% interval", note) for note in found.notes)
    assert "the GPU throttled its clocks: software power cap" in found.notes
    assert found.conditions["throttle reasons"] == "software power cap"


@pytest.mark.parametrize(("slower", "rounds"), [(1.2, EFFORT.min_rounds // 2), (1.0, 3 * EFFORT.min_rounds)])
def test_a_candidate_that_has_lost_is_not_timed_any_longer(slower: float, rounds: int) -> None:
    watch = FakeStopwatch(double, {**MAIN_US, INCUMBENT: MAIN_US[CANDIDATE] / slower}, noise=0.02)
    found = timing(watch, job(incumbent=True))
    note = f"only {found.samples} rounds were timed: the candidate is slower than the accepted kernel by more than 3%"
    assert (note in found.notes) == (slower > 1)
    assert found.samples == rounds if slower > 1 else found.samples > rounds
    assert (found.warm_us is None) == (slower > 1)


@pytest.mark.parametrize("faster", [0.9, 1.0, 1.2])
def test_pytorch_is_prepared_only_for_a_refinement_that_is_faster(faster: float) -> None:
    """Its compilation takes longer than the rounds that show it."""
    watch = FakeStopwatch(double, {**MAIN_US, INCUMBENT: MAIN_US[CANDIDATE] * faster})
    found = timing(watch, job(incumbent=True))
    beside = {"eager PyTorch", "torch.compile"}
    assert (beside <= found.baselines.keys()) == (beside <= {*watch.added}) == (faster > 1)
    assert {INCUMBENT, COPY} <= found.baselines.keys()
    assert (found.baseline != "") == (faster > 1)
    note = "PyTorch was not timed: the candidate is not faster than the accepted kernel"
    assert (note in found.notes) == (faster <= 1)
    assert len(watch.fetched) == (EFFORT.checks if faster > 1 else EFFORT.checks // 2), "its outputs are checked"


def test_an_accepted_kernel_that_fails_meanwhile_leaves_a_full_timing() -> None:
    watch = FakeStopwatch(double, {**MAIN_US, INCUMBENT: 50.0}, faults={(INCUMBENT, 2): hang()})
    found = timing(watch, job(incumbent=True))
    assert INCUMBENT not in found.baselines and "torch.compile" in found.baselines
    assert any(note.startswith("incumbent failed while it was timed") for note in found.notes)


def test_a_baseline_that_cannot_run_is_noted_and_the_candidate_timed() -> None:
    lost = {"torch.compile": Fault(Verdict.DEVICE_ERROR, "no C compiler"), ("eager PyTorch", 9): hang()}
    found = timing(FakeStopwatch(double, faults=lost))
    assert list(found.baselines) == ["copy of the compulsory bytes"]
    assert "torch.compile was not timed: no C compiler" in found.notes
    assert any(note.startswith("eager PyTorch failed while it was timed") for note in found.notes)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_judge_times_in_turns_where_the_device_can(wrong: bool) -> None:
    """With inputs drawn by the judge and outputs held to the float64 reference of the very values a call was given."""
    source = "def reference(x, w):\n    return torch.softmax(x, dim=-1) * w\n"
    problem = read_text(source, inputs_text="x: bf16[32,128], w: f32[128]")

    def kernel(inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        out = torch.softmax(inputs[0].float(), -1) * inputs[1]
        out[5] = 0 if wrong else out[5]
        return [out]

    watch, judge = FakeStopwatch(kernel, {**MAIN_US, "incumbent": 150.0}), StandardJudge()
    judge.effort = EFFORT
    artifact = artifact_for(problem, TorchDevice(lambda *tensors: None))
    found, profile = judge.time(
        problem, artifact, watch, GPUS["H200"], lambda line: None, threading.Event(), incumbent=artifact
    )  # type: ignore[arg-type]
    assert profile is None
    if wrong:
        assert isinstance(found, Fault) and found.verdict is Verdict.WRONG_RESULT and "out[5, " in found.message
    else:
        assert isinstance(found, Timing), found
        assert found.against("incumbent") is not None


def test_a_timing_survives_the_store() -> None:
    found = timing(FakeStopwatch(double, {**MAIN_US, "incumbent": 100.0}), job(incumbent=True))
    few = replace(found, half_width_us=math.inf, comparisons=(comparison("x", [1.0], [2.0]),))
    for each in (found, few):
        event = event_from_json(event_to_json(Timed("c1", each)))
        assert event == Timed("c1", each)


def test_a_timing_of_an_older_version_still_reads() -> None:
    old = {"kind": "measured", "time_us": 1.0, "method": "m", "device": "d", "samples": 3, "iqr_us": 0.1}
    text = json.dumps({"type": "timed", "candidate_id": "c1", "timing": {**old, "baselines": {}}, "fault": None})
    assert event_from_json(text) == Timed("c1", Timing(**old))  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["open", "candidate", ("candidate", 3), ("candidate", 20)])
def test_the_candidates_fault_is_the_answer(where: str | tuple[str, int]) -> None:
    watch = FakeStopwatch(double, faults={where: hang()})
    assert timed(watch) == hang()
    assert watch.closed is (where != "open")
