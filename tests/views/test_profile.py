"""The widget's answer to a query for a profile is what the figures show, in a form that JSON can hold."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.profiles import roofline, select
from cutegen_lab.profiles.rows import rows
from cutegen_lab.views.profile import ProfileView, profile_view
from tests.packaging.make_samples import ANSWERS, profile_sample
from tests.profiles.recorded import recorded

H200 = GPUS["H200"]
RUN = recorded("softmax")
ROWS = rows(RUN.state, RUN.builds)


def test_it_has_what_the_figures_have() -> None:
    view = profile_view(ROWS, "c1", H200)
    assert view.points == roofline.points(ROWS) and len(view.ceilings) == 3
    assert view.memory == select.memory(ROWS, "c1") and view.checks == select.checks(ROWS, "c1")
    assert [limit.resource for limit in view.limits if limit.limits] == ["registers"]


def test_what_if_keeps_every_step_and_where_the_kernel_is() -> None:
    kept, whole = profile_view(ROWS, "c1", H200).what_if, select.what_if(ROWS, "c1", H200)
    assert len(kept) < len(whole) / 2 and sum(p.current for p in kept) == 2
    for resource in ("registers a thread", "shared memory a block"):
        steps = {p.value: p.resident_warps for p in kept if p.resource == resource}
        for point in (p for p in whole if p.resource == resource):
            before = max(value for value in steps if value <= point.value)
            assert steps[before] == point.resident_warps


def test_an_error_without_bounds_is_null_and_still_a_failure() -> None:
    trial = RUN.state.trials["c1"]
    assert trial.check is not None
    first = next(c for c in trial.check.checks if c.errors)
    worst = replace(first, verdict=Verdict.WRONG_RESULT, errors=(replace(first.errors[0], norm=math.inf),))
    state = replace(RUN.state, trials={"c1": replace(trial, check=replace(trial.check, checks=(worst,)))})
    view = profile_view(rows(state), "c1", H200)
    (cell,) = json.loads(view.model_dump_json())["checks"]
    assert cell["failed"] == 1 and cell["error_over_budget"] is None


def test_a_candidate_of_which_nothing_is_known_has_empty_plots() -> None:
    state = replace(RUN.state, trials={}, compiled={})
    view = profile_view(rows(state), "c1", H200)
    assert not (view.points or view.ceilings or view.memory or view.limits or view.what_if or view.checks)


def test_the_front_ends_sample_is_what_python_says() -> None:
    kept = Path(ANSWERS / "profile.json").read_text(encoding="utf-8")
    assert kept == profile_sample(), "run `python tests/packaging/make_samples.py`"
    ProfileView.model_validate_json(kept)
