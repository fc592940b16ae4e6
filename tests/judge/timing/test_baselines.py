"""Which of PyTorch's ways a problem is timed beside, and which is the baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.cli.arguments import build_parser
from cutegen_lab.core.stopwatch import ReferenceKind
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.timing.baselines import REFERENCES, baseline_kinds, fastest_baseline
from cutegen_lab.problems import read_text
from cutegen_lab.session.factories import make_judge
from tests.judge.fake_stopwatch import MAIN_US, FakeStopwatch
from tests.judge.timing.test_measured import double, job, timing

IMAGES = "x: bf16[2,3,16,16], w: bf16[4,3,3,3]"
CHANNELS_LAST = REFERENCES["channels_last"]


@pytest.mark.parametrize(
    ("expression", "inputs", "images"),
    [
        ("F.conv2d(x, w).relu()", IMAGES, True),
        ("F.conv_transpose2d(x, w.transpose(0, 1))", IMAGES, True),
        ("F.conv1d(x, w)", "x: f32[2,3,16], w: f32[4,3,3]", False),
        ("F.conv3d(x, w)", "x: f32[2,3,8,8,8], w: f32[4,3,3,3,3]", False),
        ("x.sum((2, 3)) @ w.sum((2, 3)).T", IMAGES, False),
    ],
)
def test_images_that_are_convolved_are_timed_in_channels_last_too(expression: str, inputs: str, images: bool) -> None:
    problem = read_text(f"def reference(x, w):\n    return {expression}\n", inputs_text=inputs)
    assert problem.images is images
    assert baseline_kinds(problem, ("eager", "compile")) == ("eager", "compile", *["channels_last"] * images)
    assert baseline_kinds(problem, ("compile",)) == ("compile",), "not asked of eager PyTorch, not of its layouts"


def test_max_autotune_is_there_only_where_effort_says_so() -> None:
    problem = replace(job().problem, images=True)
    asked: tuple[ReferenceKind, ...] = ("eager", "compile", "max-autotune")
    assert baseline_kinds(problem, asked) == (*asked, "channels_last")
    assert "max-autotune" not in baseline_kinds(problem, ("eager", "compile"))


def test_the_fastest_median_is_the_baseline() -> None:
    times = {"candidate": [1.0], "copy of the compulsory bytes": [2.0], "eager PyTorch": [9.0, 5.0, 5.0]}
    assert fastest_baseline(times) == "eager PyTorch"
    assert fastest_baseline({**times, "torch.compile": [3.0, 6.0, 7.0]}) == "eager PyTorch"
    assert fastest_baseline({**times, CHANNELS_LAST: [4.0, 4.0, 40.0]}) == CHANNELS_LAST
    assert fastest_baseline({"candidate": [1.0], "incumbent": [2.0]}) == ""


def test_a_timing_names_its_baseline() -> None:
    assert timing(FakeStopwatch(double)).baseline == "torch.compile"
    lost = {"torch.compile": Fault(Verdict.DEVICE_ERROR, "no C compiler")}
    assert timing(FakeStopwatch(double, faults=lost)).baseline == "eager PyTorch"
    work = replace(job(), problem=replace(job().problem, images=True))
    watch = FakeStopwatch(double, {**MAIN_US, CHANNELS_LAST: 150.0})
    found = timing(watch, work)
    assert watch.added == ["candidate", "copy of the compulsory bytes", "eager PyTorch", "torch.compile", CHANNELS_LAST]
    assert found.baseline == CHANNELS_LAST and found.baselines[CHANNELS_LAST] == pytest.approx(150, rel=0.002)


@pytest.mark.parametrize("command", ["judge problem.py kernel.py", "run problem.py", "tune problem.py"])
def test_every_command_that_times_can_be_asked_for_max_autotune(command: str) -> None:
    asked = build_parser().parse_args([*command.split(), "--max-autotune"])
    assert asked.max_autotune and not build_parser().parse_args(command.split()).max_autotune
    judge = make_judge(max_autotune=asked.max_autotune)
    assert isinstance(judge, StandardJudge) and "max-autotune" in judge.effort.references
