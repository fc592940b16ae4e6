"""What each line costs, by resource, for the text that is shown."""

from __future__ import annotations

from dataclasses import replace

from run_script import Script

from cutegen_lab.core.trial import LineCounters, Profile
from cutegen_lab.views.heat import heat
from cutegen_lab.views.run_view import build_view
from cutegen_lab.views.specialised import SpecialisedText, shown

LINES = (
    LineCounters(0, {"warp_instructions": 10.0}),
    LineCounters(3, {"global_load_sectors": 6.0, "bulk_load_sectors": 2.0, "moved_bytes": 256.0}),
    LineCounters(4, {"shared_wavefronts": 8.0, "shared_conflicts": 4.0, "warp_instructions": 30.0}),
)


def profile(limiter: str) -> Profile:
    return Profile("emulator", limiter, {}, lines=LINES)


def test_the_resource_that_limits_comes_first_and_code_of_no_line_counts_in_the_total() -> None:
    found = heat(profile("shared memory"))
    assert [each.label for each in found] == ["Wavefronts", "Sectors", "Conflicts", "Instructions"]
    assert found[1].lines == {3: 8.0} and found[3].total == 40.0 and found[3].lines == {4: 30.0}
    assert heat(profile("memory bandwidth"))[0].label == "Sectors"
    assert heat(None) == [] and heat(replace(profile(""), lines=())) == []


def test_predicted_waits_come_first_where_latency_limits() -> None:
    waits = (*LINES, LineCounters(0, {"predicted_waits_us": 0.5}), LineCounters(5, {"predicted_waits_us": 1.5}))
    first = heat(replace(profile("memory latency: too few loads in flight"), lines=waits))[0]
    assert (first.label, first.total, first.lines) == ("Predicted stall", 2.0, {5: 1.5})


def test_it_is_by_the_lines_of_the_text_that_is_shown() -> None:
    script = Script().proven()
    state = script.state()
    trial = replace(state.trials["c1"], profile=profile("memory bandwidth"))
    state = replace(state, trials={**state.trials, "c1": trial})
    text = SpecialisedText("one = 1\n", {3: 1})
    (candidate,) = build_view(state, script.events, specialised={"c1": text}).candidates
    assert candidate.heat[0].lines == {3: 8.0} and shown(candidate).heat[0].lines == {1: 8.0}
    assert next(each for each in shown(candidate).heat if each.label == "Instructions").lines == {}
