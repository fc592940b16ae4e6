"""What a prompt withholds: bounds, and profiles until the structure settles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.run import Guidance, Profiling
from cutegen_lab.providers.guidance import told
from cutegen_lab.providers.prompt_topics import WorkClass
from cutegen_lab.providers.prompting import render
from tests.providers.requests import profiled, request

FLOOR = ("Speed of light", "attainable", "no change saves more than", "speed of light")


def refining(passed: int, profiling: Profiling = "settled", bounds: bool = True) -> GenerateRequest:
    asked = request("refine", profiled())
    return replace(asked, history=(profiled(),) * passed, guidance=Guidance(bounds=bounds, profiling=profiling))


@pytest.mark.parametrize(
    ("profiling", "kind", "passed", "shown"),
    [
        ("settled", "matmul", 1, False), ("settled", "attention", 1, False), ("settled", "convolution", 1, False),
        ("settled", "matmul", 2, True), ("settled", "row reduction", 1, True),
        ("always", "matmul", 1, True), ("never", "row reduction", 3, False),
    ],
)  # fmt: skip
def test_profiles_are_withheld_by_class_and_depth(
    profiling: Profiling, kind: WorkClass, passed: int, shown: bool
) -> None:
    parent = told(refining(passed, profiling), kind).parent
    assert parent is not None and parent.trial is not None and (parent.trial.profile is not None) is shown


def test_without_bounds_a_prompt_says_nothing_of_how_fast_a_kernel_could_be() -> None:
    with_bounds, without = (render(refining(1, bounds=bounds)).text for bounds in (True, False))
    assert all(word in with_bounds for word in FLOOR[:3])
    task = without[without.index("## The problem") :]
    assert not any(word in task for word in FLOOR)
    assert "limited by: memory bandwidth" in without  # the profile stays


def test_a_withheld_profile_is_not_in_the_prompt() -> None:
    assert "limited by" not in render(refining(1, "never")).text
    assert "no change saves more than" in render(refining(1, "always")).text


def test_facts_and_other_drafts_are_shown() -> None:
    asked = replace(request(), facts=("“two rows”: -20% time (measured)",), history=(profiled(),))
    text = render(asked).text
    assert "“two rows”: -20% time (measured)" in text and "works in another way" in text
    assert "works in another way" not in render(request()).text
