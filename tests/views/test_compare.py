"""Two candidates compared: numbers with their change, parameters, texts, PTX."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_script import BAD_ERROR, ERROR, SOURCE, Script, timing

from cutegen_lab.core.run import Profiled, Step
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.views.compare import comparison, comparison_text
from cutegen_lab.views.model import ComparisonView


def profiled(script: Script, **counters: float) -> Script:
    return script.start(Step.PROFILE).add(Profiled(script.current, Profile("emulator", "DRAM", counters, ())))


def two(first: float = 40.0, second: float = 30.0, kinds: tuple[str, str] = ("predicted", "predicted")) -> Script:
    script = Script().generate().compile().check().time(timing(first, kinds[0]))
    profiled(script, warp_instructions=2e6, resident_warps_per_sm=16.0).answer("approve")
    script.generate(SOURCE.replace("256", "512"), parent="c1").compile().check(error=replace(ERROR, norm=3.2e-3))
    script.time(timing(second, kinds[1]))
    return profiled(script, warp_instructions=1e6, resident_warps_per_sm=32.0, shared_conflicts=7.0)


def row(found: ComparisonView, key: str) -> tuple[str, str, str, str]:
    each = next(each for each in found.metrics if each.key == key)
    return each.before, each.after, each.change, each.tone


def test_numbers_change_from_the_first_to_the_second_and_less_is_not_always_better() -> None:
    view = two().view()
    found = comparison(view, "c1", "c2")
    assert row(found, "time") == ("40 µs predicted", "30 µs predicted", "−25%", "good")
    assert row(found, "error") == ("1.6e-03", "3.2e-03", "+100%", "bad")
    assert row(found, "registers") == ("40", "40", "=", "neutral")
    assert row(found, "resident_warps") == ("16 of 64 (25%)", "32 of 64 (50%)", "+100%", "good")
    assert row(found, "warp_instructions") == ("2,000,000", "1,000,000", "−50%", "good")
    assert row(found, "shared_conflicts") == ("", "7", "", "neutral")
    assert row(comparison(view, "c2", "c1"), "time")[2:] == ("+33%", "bad")


def test_a_measured_time_is_not_compared_with_a_predicted_one() -> None:
    found = comparison(two(kinds=("predicted", "measured")).view(), "c1", "c2")
    assert row(found, "time") == ("40 µs predicted", "30 µs measured", "", "neutral")


def test_texts_and_ptx_have_diffs_between_candidates_that_are_not_related() -> None:
    script = two().answer("branch", target="c1")
    script.generate(SOURCE.replace("256", "1024"), parent="c1").compile().check(Verdict.WRONG_RESULT, BAD_ERROR)
    found = comparison(script.view(), "c2", "c3", ptx=("ld\nst", "ld\nadd\nst"))
    assert [line.text for line in found.diff if line.kind != "same" and line.kind != "gap"] == [
        "THREADS = 512", "THREADS = 1024",
    ]  # fmt: skip
    assert [(line.kind, line.text) for line in found.ptx_diff] == [("same", "ld"), ("added", "add"), ("same", "st")]
    brief, whole = comparison_text(found), comparison_text(found, ptx=True)
    assert "text: +1 −1 lines" in brief and "PTX: +1 −0 lines" in brief
    assert "+ add" in whole and "+ add" not in brief
    assert "c2" in brief.splitlines()[0] and "c3" in brief.splitlines()[0]


def test_why_there_is_no_ptx_is_said() -> None:
    script = Script().proven().answer("approve").generate(parent="c1").fail_compile()
    found = comparison(script.view(), "c1", "c2", ptx_note="c2 did not compile")
    assert "PTX: c2 did not compile" in comparison_text(found)
    assert found.ptx_diff == []


def test_an_unknown_candidate_is_an_error() -> None:
    with pytest.raises(KeyError):
        comparison(two().view(), "c1", "c9")
