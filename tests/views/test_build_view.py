"""What is seen of a run in each situation it can be in."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from run_script import BAD_ERROR, FAULT, SOURCE, Script, timing

from cutegen_lab.core.hot_lines import hottest
from cutegen_lab.core.run import GenerateFailed, Resumed, RunSettings, Step, StepFailed
from cutegen_lab.core.trial import Comparison, LineCounters, Profile
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.views.evidence import profile_rows
from cutegen_lab.views.model import IntervalView, RunView
from cutegen_lab.views.run_view import _code_of


def statuses(view: RunView, index: int = -1) -> dict[str, str]:
    return {step.step: step.status for step in view.candidates[index].steps}


def evidence(view: RunView, index: int = -1) -> dict[str, str]:
    return {row.key: row.value for row in view.candidates[index].evidence}


def test_generating_the_first_candidate():
    view = Script().start(Step.GENERATE).view()
    assert (view.status, view.step, view.current_id, view.verbs) == ("running", "generate", None, ["stop"])
    assert [s.status for s in view.timeline] == ["running"] + ["pending"] * 5
    assert view.timeline[0].started_at == view.updated_at


def test_compiled_and_being_checked_shows_resources_before_a_verdict():
    view = Script().generate().compile().start(Step.CHECK).view()
    assert statuses(view) == {
        "generate": "done", "compile": "done", "check": "running", "time": "pending", "profile": "pending",
        "review": "pending",
    }  # fmt: skip
    assert evidence(view)["registers"] == "40"
    assert "verdict" not in evidence(view)
    assert view.candidates[0].steps[1].seconds == 1.0
    assert view.verbs == ["stop", "comment", "pin"]


def test_a_problem_whose_answer_hardly_depends_on_an_input_is_labelled():
    script = Script()
    started = script.events[0].event
    labelled = replace(started, problem=replace(started.problem, insensitive=("x",)))
    script.events[0] = replace(script.events[0], event=labelled)
    view = script.proven().view()
    assert evidence(view)["label"] == "the answer hardly depends on x: left out of means"
    assert "label" not in evidence(Script().proven().view())


def test_review_of_a_proven_candidate():
    view = Script().proven().view(log=("checking prime",))
    assert (view.status, view.current_id) == ("review", "c1")
    assert view.verbs == ["approve", "reject", "edit", "stop", "comment", "pin"]
    rows = {row.key: row for row in view.candidates[0].evidence}
    assert rows["verdict"].value == "passed"
    assert rows["error"].value == "1.6e-03"
    assert rows["error"].detail == "PyTorch bf16 1.7e-03, limit 5.1e-03"
    assert rows["workloads"].value == "2/2"
    assert rows["shared_memory"].value == "1,088 B"
    assert (rows["time"].value, rows["time"].basis) == ("36.5 µs", "predicted")
    assert (rows["speed_of_light"].value, rows["speed_of_light"].basis) == ("28 µs", "bound")
    assert rows["sol_gap"].value == "1.31×"
    assert rows["limiter"].value == "DRAM bandwidth"
    assert rows["tokens"].value == "1,200"
    assert view.candidates[0].provenance["prompts"] == "refine v3 (bbbbbbbbbbbb)"
    assert view.trend[0].error == 1.6e-3 and view.trend[0].basis == "predicted"
    assert view.versions == {"cutegen-lab": "0.1.0", "torch": "2.13.0"}
    assert view.log == ["checking prime"]


def test_a_predicted_time_says_how_far_the_measured_one_may_be_off():
    for ends, said in (((33.5, 47.1), "take 33.5 µs to 47.1 µs"), (None, "is not known")):
        predicted = replace(timing(), band_us=ends)
        view = Script().generate().compile().check().time(predicted).profile().view()
        row = next(r for r in view.candidates[0].evidence if r.key == "time")
        assert row.basis == "predicted" and row.detail.endswith(said)


def test_measured_time_is_labelled_measured_with_its_baselines():
    script = Script().generate().compile().check()
    measured = timing(30.0, "measured")
    view = (
        script.time(type(measured)(**{**vars(measured), "samples": 30, "baselines": {"eager": 57.0}})).profile().view()
    )
    row = next(r for r in view.candidates[0].evidence if r.key == "time")
    assert row.basis == "measured" and "eager 57 µs" in row.detail and "of 30" in row.detail


def test_a_time_measured_in_turns_shows_its_interval_its_answers_and_its_conditions():
    script = Script().generate().compile().check()
    measured = replace(
        timing(30.0, "measured"),
        samples=40, iqr_us=0.2, half_width_us=0.05, warm_us=21.0, baseline="eager",
        baselines={"eager": 57.0, "incumbent": 30.1, "copy of the compulsory bytes": 20.0},
        comparisons=(
            Comparison("eager", "faster", 0.526, 0.52, 0.53, 40),
            Comparison("incumbent", "ambiguous", 0.99, 0.98, 1.001, 40),
            Comparison("copy of the compulsory bytes", "slower", 1.5, 1.49, 1.51, 40),
            Comparison("few", "ambiguous", 1.0, -math.inf, math.inf, 3),
        ),
        notes=("the GPU throttled its clocks: software power cap",),
        conditions={"GPU": "NVIDIA H200", "SM clock": "1980 MHz"},
    )  # fmt: skip
    rows = {r.key: r for r in script.time(measured).profile().view().candidates[0].evidence}
    assert "median ± 0.05 µs (95%), IQR 0.2 µs of 40" in rows["time"].detail
    assert (rows["time_warm"].value, rows["time_warm"].basis) == ("21 µs", "measured")
    assert rows["against_1"].value == "faster: 0.526× its time" and rows["against_1"].tone == "good"
    assert rows["against_1"].detail == "95% 0.520 to 0.530, 40 interleaved rounds; it takes 57 µs"
    assert rows["against_1"].label == "Compared with eager, the baseline"
    assert rows["against_2"].label == "Compared with incumbent" and rows["against_2"].tone == "warn"
    assert rows["against_3"].tone == "neutral" and rows["against_4"].detail.startswith("95% unknown")
    assert rows["timing_note_1"].tone == "warn" and "power cap" in rows["timing_note_1"].value
    assert rows["conditions"].value == "GPU NVIDIA H200, SM clock 1980 MHz"
    assert all(
        rows[key].basis == "measured" for key in rows if key.startswith(("time", "against")) and "note" not in key
    )


def test_a_failed_compile_goes_back_to_the_provider_and_its_diagnostics_stay():
    view = Script().generate().fail_compile().start(Step.GENERATE).view()
    assert statuses(view)["compile"] == "failed"
    assert view.candidates[0].verdict == "compile_error"
    found = view.candidates[0].diagnostics[0]
    assert (found.line, found.code, found.suggestion) == (3, "UNSUP_X", "use cute.arch")
    assert view.timeline[0].status == "running"


def test_a_wrong_result_names_its_worst_element_and_cannot_be_plainly_approved():
    script = Script(settings=RunSettings())
    for _ in range(script.settings.budget.max_fixes + 1):
        parent = script.current if script.candidates else None
        script.generate(parent=parent).compile().check(Verdict.WRONG_RESULT, BAD_ERROR)
        if script.state().step is Step.REVIEW:
            break
    view = script.start(Step.REVIEW).view()
    assert view.status == "review"
    assert view.verbs[0] == "approve_unproven" and "approve" not in view.verbs
    assert evidence(view)["worst_element"] == "out[3, 5]"
    assert evidence(view)["workloads"] == "1/2"
    assert statuses(view)["check"] == "failed" and statuses(view)["time"] == "skipped"


def test_a_fault_is_told_with_its_place():
    view = Script().generate().compile().check(Verdict.OUT_OF_BOUNDS, fault=FAULT).view()
    assert "line 9" in evidence(view)["fault"] and "ld.global.b16" in evidence(view)["fault"]


@pytest.mark.parametrize(("verdict", "told"), [(Verdict.OUT_OF_BOUNDS, True), (Verdict.HANG, False)])
def test_a_kernel_that_leaves_the_tensors_of_sizes_it_was_not_made_for_may_say_so(verdict: Verdict, told: bool):
    """What is wrong at any size is no matter of sizes."""
    view = Script().generate().compile().check(verdict, fault=replace(FAULT, verdict=verdict)).view()
    (row,) = (row for row in view.candidates[-1].evidence if row.key == "fault")
    assert row.detail.startswith("workload prime") and ("constraints() may leave out" in row.detail) == told


def test_accepted_then_refined_shows_the_diff_to_the_parent():
    script = Script().proven().answer("approve")
    view = script.proven(source=SOURCE.replace("256", "512"), title="threads 256 -> 512", parent="c1").view()
    assert view.incumbent_id == "c1" and view.candidates[0].accepted
    assert view.candidates[0].answer == "approved"
    changed = [(line.kind, line.text, line.old, line.new) for line in view.candidates[1].diff if line.kind != "same"]
    assert ("removed", "THREADS = 256", 3, None) in changed
    assert ("added", "THREADS = 512", None, 3) in changed
    assert view.candidates[0].diff == []
    assert "branch" in view.verbs


def test_best_is_the_fastest_by_measured_times_where_there_are_any():
    """A slower candidate may be accepted, and predicted times are not compared with measured ones."""
    script = Script()
    assert script.view().best_id is None
    for time_us, kind in ((36.5, "predicted"), (35.0, "measured"), (35.5, "measured")):
        parent = {"parent": script.current} if script.candidates else {}
        script.generate(**parent).compile().check().time(timing(time_us, kind)).profile().answer("approve")
    assert (script.view().best_id, script.view().incumbent_id) == ("c2", "c3")
    script.generate(parent="c3").compile().check(Verdict.WRONG_RESULT, BAD_ERROR)
    assert script.view().best_id == "c2"


def test_best_is_none_that_was_rejected():
    """It would be shown as what the run achieved."""
    script = Script()
    for time_us, answer in ((36.0, "approve"), (35.5, "reject"), (35.8, "approve")):
        parent = {"parent": "c1"} if script.candidates else {}
        script.generate(**parent).compile().check().time(timing(time_us)).profile().answer(answer)
    assert script.view().best_id == "c3"


def test_what_was_decided_is_no_pending_review():
    script = Script().proven().answer("approve")
    script.proven(parent="c1").answer("reject", "slower")
    assert [statuses(script.view(), index)["review"] for index in (0, 1)] == ["done", "done"]
    assert statuses(Script().proven().view())["review"] != "done"
    edited = Script().proven().answer("edit", "x = 1")
    assert statuses(edited.view(), 0)["review"] == "done", "it was answered with another text"


def test_numbers_to_compare_by_come_as_they_are_known():
    script = Script().generate()
    assert script.view().candidates[0].metrics == []
    compiled = [metric.key for metric in script.compile().view().candidates[0].metrics]
    assert compiled == ["registers", "spills", "shared_memory"]
    half = replace(
        timing(36.5, "measured"), half_width_us=0.2, baselines={"eager PyTorch": 90.0, "incumbent": 40.0},
        comparisons=(
            Comparison("eager PyTorch", "faster", 0.406, 0.4, 0.41, 40),
            Comparison("incumbent", "faster", 0.91, 0.9, 0.92, 40),
            Comparison("few", "ambiguous", 1.0, -math.inf, math.inf, 3),
        ),
    )  # fmt: skip
    seen = script.check(error=replace(BAD_ERROR, norm=math.inf)).time(half).profile().view().candidates[0]
    found = {metric.key: metric for metric in seen.metrics}
    assert (found["time"].value, found["time"].basis, found["time"].text) == (36.5, "measured", "36.5 µs ± 0.2 µs")
    assert found["error"].value is None and found["error"].text == "not finite"
    assert seen.baselines == {"eager PyTorch": 90.0}
    assert seen.baseline_intervals == {"eager PyTorch": IntervalView(low=0.4, high=0.41)}


@pytest.mark.parametrize(("provider", "again"), [("templates", False), ("openai", True)])
def test_what_cannot_bring_anything_is_not_offered(provider: str, again: bool):
    """Templates say the same to the same request, and change their own texts only."""
    first = Script(settings=RunSettings(provider=provider)).proven()
    assert ("retry" in first.view().verbs) == again  # there is one first kernel of a template
    refined = first.answer("approve").proven(parent="c1")
    assert "retry" in refined.view().verbs  # the next parameter
    assert refined.view().branch_points == ["c1", "c2"]
    mine = refined.answer("edit", SOURCE + "# mine").start(Step.COMPILE).compile().check().time().profile()
    mine.candidates = 3
    view = mine.view()
    assert view.branch_points == (["c1", "c2", "c3"] if again else ["c1", "c2"])
    assert "branch" in view.verbs
    view = mine.answer("approve").start(Step.GENERATE).add(GenerateFailed("no further one")).view()
    assert (view.status, "retry" in view.verbs) == ("review", again)


def test_a_failed_step_of_ours_can_be_tried_again_whatever_the_provider():
    script = Script().generate().compile().start(Step.CHECK).add(StepFailed(Step.CHECK, "the worker died"))
    assert "retry" in script.start(Step.REVIEW).view().verbs


def test_an_edit_is_a_candidate_of_the_analyst_that_was_not_generated():
    view = Script().proven().answer("edit", SOURCE + "# mine\n").start(Step.COMPILE).view()
    assert view.candidates[1].source == SOURCE + "# mine\n"
    assert view.candidates[1].provider == "analyst"
    assert view.candidates[0].answer == "edited"
    assert statuses(view)["generate"] == "skipped" and statuses(view)["compile"] == "running"


def test_rejected_and_branched_say_so():
    script = Script().proven().answer("approve").proven(parent="c1").answer("reject", "too clever")
    assert script.view().candidates[1].answer == "rejected: too clever"
    view = script.proven(parent="c1").answer("branch", target="c2").start(Step.GENERATE).view()
    assert view.candidates[2].answer == "branched from c2"
    assert view.step == "generate"


def test_interrupted_run_offers_only_resume_and_nothing_runs():
    view = Script().generate().compile().start(Step.CHECK).view(attached=False)
    assert (view.status, view.verbs) == ("interrupted", ["resume"])
    step = view.candidates[0].steps[2]
    assert (step.status, step.detail, step.started_at) == ("pending", "interrupted", None)


def test_resumed_work_starts_again():
    script = Script().generate().compile().start(Step.CHECK).add(Resumed())
    assert statuses(script.view())["check"] == "pending"
    assert statuses(script.start(Step.CHECK).view())["check"] == "running"


def test_stopped_run_is_done_and_can_be_resumed():
    view = Script().generate().compile().start(Step.CHECK).answer("stop", "enough").view()
    assert (view.status, view.note) == ("done", "enough")
    assert view.verbs == ["resume", "edit", "branch", "comment", "pin"]
    assert "running" not in statuses(view).values()


def test_our_own_failure_rests_at_review_with_retry():
    script = Script().generate().compile().start(Step.CHECK).add(StepFailed(Step.CHECK, "the emulator's worker died"))
    view = script.start(Step.REVIEW).view()
    assert statuses(view)["check"] == "failed"
    assert view.note == "the emulator's worker died"
    assert view.verbs[0] == "approve_unproven" and "retry" in view.verbs


def test_a_failed_generation_keeps_its_own_timeline():
    script = Script(settings=RunSettings(provider="openai")).proven().answer("approve")
    view = script.start(Step.GENERATE).add(GenerateFailed("no answer in 60 s")).view()
    assert [s.status for s in view.timeline] == ["failed", "pending", "pending", "pending", "pending", "pending"]
    assert view.verbs == ["retry", "edit", "branch", "stop", "comment", "pin"]
    assert statuses(view)["generate"] == "done"


def test_an_exhausted_provider_ends_the_run():
    view = Script().proven().answer("approve").start(Step.GENERATE).add(GenerateFailed("no more ideas", True)).view()
    assert (view.status, view.outcome, view.note) == ("done", "accepted", "no more ideas")


def test_the_device_is_the_one_that_judged():
    fresh = Script(settings=RunSettings(device="auto"))
    assert fresh.view().settings.device == "auto"
    judged = fresh.proven()
    assert judged.view().settings.device == judged.state().trials["c1"].device != "auto"
    assert Script(settings=RunSettings(device="emulator")).proven().view().settings.device == "emulator"


@pytest.mark.parametrize("attached", [True, False])
def test_views_survive_json(attached):
    view = Script().proven().view(attached=attached)
    assert RunView.model_validate_json(json.dumps(view.model_dump(mode="json"))) == view


def test_what_is_not_finite_stays_out_of_json_and_of_the_plots():
    view = Script().generate().compile().check(Verdict.WRONG_RESULT, replace(BAD_ERROR, norm=math.inf)).view()
    assert view.trend[0].error is None and view.trend[0].torch_error == BAD_ERROR.torch_norm
    json.dumps(view.model_dump(mode="json"), allow_nan=False)
    assert evidence(view)["error"] == "not finite"


def test_the_hottest_lines_with_what_they_cost():
    lines = (
        LineCounters(0, {"warp_instructions": 1e6, "moved_bytes": 1e9}),
        LineCounters(1, {"global_load_requests": 100, "global_load_sectors": 400, "global_load_bytes": 3200,
                         "moved_bytes": 12800, "warp_instructions": 100, "lane_instructions": 1600}),
        LineCounters(2, {"bulk_loads": 2, "bulk_load_bytes": 8192, "bulk_load_sectors": 256, "moved_bytes": 8192}),
        LineCounters(3, {"shared_requests": 10, "shared_wavefronts": 320, "shared_conflicts": 310}),
    )  # fmt: skip
    found = hottest(Profile("emulator", "memory bandwidth", {}, (), lines))
    assert [str(hot) for hot in found] == [
        "line 1: 61% of global sectors, loads issued or first used here: 4.0 sectors per request, ideal 1, "
        "50% of lanes active",
        "line 2: 39% of global sectors, bulk loads of 4,096 B",
    ]
    (one,) = hottest(Profile("emulator", "shared memory: bank conflicts", {}, (), lines))
    assert str(one) == "line 3: 100% of shared-memory wavefronts, 32.0 wavefronts per request, ideal 1"
    assert hottest(Profile("emulator", "memory bandwidth", {}, ())) == ()
    assert hottest(Profile("emulator", "at the floor: memory 6.08 µs + launch 2 µs", {}, (), lines)) == ()
    waits = (LineCounters(4, {"barrier_waits": 8.0, "warp_instructions": 8.0}), *lines)
    (slow,) = hottest(Profile("emulator", "barriers, 3 of 4 µs that blocks take one after another", {}, (), waits))
    assert (slow.line, slow.share) == (4, "100% of barrier waits")


def test_the_terms_of_a_prediction_are_shown_after_its_limiter():
    counters = {"predicted_memory_us": 6.08, "predicted_waits_us": 0.5, "predicted_launch_us": 2.0}
    rows = profile_rows(Profile("emulator", "memory bandwidth, 6.08 µs", counters), "")
    assert [row.key for row in rows] == ["limiter", "terms"]
    assert rows[1].value == "predicted: memory 6.08, waits 0.5, launch 2 µs"
    measured = Profile("hardware", "memory bandwidth", {"moved_bytes": 1.0})
    assert [row.key for row in profile_rows(measured, "")] == ["limiter"]


def test_hot_lines_are_shown_with_text_that_cannot_act():
    lines = (LineCounters(1, {"moved_bytes": 64.0, "warp_instructions": 1.0, "lane_instructions": 32.0}),)
    profile = Profile("emulator", "memory bandwidth", {}, (), lines)
    rows = profile_rows(profile, "x = '\x1b[31m<b>'\n")
    assert (rows[-1].key, rows[-1].label, rows[-1].value) == ("hot_line_1", "Line 1", "100% of global sectors")
    assert rows[-1].detail == r"x = '\x1b[31m<b>'"  # markup is text: whoever shows it escapes it


def test_a_long_hot_line_ends_after_a_token():
    lines = (LineCounters(1, {"moved_bytes": 64.0}),)
    profile = Profile("emulator", "memory bandwidth", {}, (), lines)
    call = "cute.copy(load, cute.flat_divide(gX, parts), cute.flat_divide(rX, parts), "
    for text, shown in (
        (f"    {call}cache_policy=EVICT_LAST)\n", f"{call.rstrip()}…"),
        (f"    {call}cache)\n", f"{call}cache)"),  # 80 characters
        (f"{'x' * 100}\n", f"{'x' * 79}…"),
    ):
        assert profile_rows(profile, text)[-1].detail == shown
    (hot,) = hottest(profile)
    assert hot.text(f"{call}cache_policy=EVICT_LAST)", 200).endswith("cache_policy=EVICT_LAST)")


def test_problems_that_differ_in_comments_only_are_the_same_code() -> None:
    texts = ("def reference(x):  # x: f32[4]\n    return x\n", "def reference(x):\n    # x: f32[4]\n    return x\n")
    codes = [_code_of(text) for text in (*texts, texts[0].replace("return x", "return -x"), "def f(:")]
    assert codes[0] == codes[1] and len(set(codes)) == 3
    _code_of("x = " + " + ".join(["1"] * 450))  # a tree that is deep, not wide
