"""What results are worth, and what counts as fast."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.run import Checked, RunState, Step, StepStarted, StoredEvent, Timed
from cutegen_lab.core.stopwatch import EAGER
from cutegen_lab.core.trial import CheckResult, Timing, WorkloadCheck
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.loop.budget import working_seconds
from cutegen_lab.loop.machine import fold
from cutegen_lab.suite.aggregates import summary
from cutegen_lab.suite.compare import compared
from cutegen_lab.suite.integrity import FEW_CHECKS, integrity_of
from cutegen_lab.suite.record import Row
from cutegen_lab.suite.table import sections, sentences
from tests.loop.events import passing
from tests.loop.scripted import started
from tests.suite.rows import suite, timed

BOUND_US = 5.0


def accepted(
    time_us: float = 10.0, checks: int = 100, verdict: Verdict = Verdict.PASSED, best_us: float = 30.0
) -> RunState:  # fmt: skip
    """A run whose accepted kernel has this evidence."""
    state = fold([started(), *passing("c1")])
    each = WorkloadCheck("main", "normal", 1, Verdict.PASSED)
    timing = Timing("measured", time_us, "script", "H200", baselines={EAGER: best_us}, baseline=EAGER)
    trial = replace(
        state.trials["c1"], verdict=verdict, timing=timing if verdict.passed else None,
        check=CheckResult(verdict, "", (each,) * checks),
    )  # fmt: skip
    return replace(state, trials={"c1": trial}, incumbent_id="c1")


@pytest.mark.parametrize(
    ("state", "degenerate", "label"),
    [
        (accepted(), False, "passed"),
        (accepted(checks=FEW_CHECKS - 1), False, "few checks"),
        (accepted(verdict=Verdict.INCONCLUSIVE), False, "not proven"),
        (accepted(), True, "degenerate"),
        (accepted(4.7), False, "quarantined"),
        (accepted(4.7), True, "quarantined"),
        (accepted(4.9), False, "passed"),  # noise
        (accepted(5.0), False, "passed"),
        (accepted(4.7, best_us=4.0), False, "passed"),  # PyTorch is below the bound too: the bound is wrong
        (replace(accepted(), incumbent_id=None), False, ""),
    ],
)
def test_labels(state: RunState, degenerate: bool, label: str) -> None:
    assert integrity_of(state, BOUND_US, degenerate) == label


def test_a_candidate_that_the_judge_refused_as_too_fast_is_a_label_if_nothing_was_accepted() -> None:
    refused = Timed("c1", None, Fault(Verdict.TOO_FAST, "a sample took 1 µs"))
    state = fold([started(), *[e for e in passing("c1") if not isinstance(e, Timed) and e.type != "profiled"], refused])
    assert integrity_of(state, BOUND_US, False) == "quarantined"


FAIR = timed("fair", 10.0, eager_us=15.0, best_us=15.0, integrity="passed", gpu_seconds=2.0)
FAKE = timed("fake", 1.0, eager_us=15.0, best_us=15.0, integrity="quarantined", gpu_seconds=3.0, too_fast=2)
EMPTY = timed("empty", 2.0, eager_us=15.0, best_us=15.0, integrity="degenerate", label="the floor is mostly the launch")


def test_a_quarantined_result_never_counts_as_fast() -> None:
    found = summary((FAIR, FAKE, EMPTY))
    assert (found.quarantined, found.degenerate, found.correct, found.gpu_seconds) == (1, 1, 3, 5.0)
    assert found.fast_eager == {0.0: 0.5, 0.5: 0.5, 1.0: 0.5, 1.5: 0.0, 2.0: 0.0}  # of fair and fake
    assert [gap.count for gap in found.gaps] == [1] and found.gaps[0].geomean.value == 2.0
    slower = replace_time(FAIR, 20.0)
    ratios = compared(suite(FAIR, FAKE, EMPTY), suite(slower, FAKE, EMPTY)).ratios
    assert [(pair.first.name, pair.ratio) for pair in ratios] == [("fair", 2.0)]


def replace_time(row: Row, time_us: float) -> Row:
    return row.model_copy(update={"time_us": time_us})


def test_tables_keep_them_apart() -> None:
    shown = sections(suite(FAIR, FAKE, EMPTY))
    assert [(section.title.split(",")[0].split(":")[0], [row[0] for row in section.rows]) for section in shown] == [
        ("Problems", ["fair"]), ("Degenerate problems", ["empty"]), ("Quarantined", ["fake"]),
    ]  # fmt: skip
    cells = dict(zip(shown[2].head, shown[2].rows[0], strict=True))
    assert (cells["integrity"], cells["GPU"], cells["note"]) == ("quarantined", "3 s", "2 candidates below the bound")
    assert dict(zip(shown[1].head, shown[1].rows[0], strict=True))["GPU"] == "-"
    assert any(line.endswith("5 s of them on a GPU") for line in sentences(suite(FAIR, FAKE)))


def test_seconds_of_some_steps() -> None:
    checked = next(event for event in passing("c1") if isinstance(event, Checked))
    events = [
        StoredEvent(1, 0.0, StepStarted(Step.COMPILE)), StoredEvent(2, 4.0, checked),
        StoredEvent(3, 10.0, StepStarted(Step.CHECK)), StoredEvent(4, 12.5, checked),
    ]  # fmt: skip
    assert (working_seconds(events), working_seconds(events, (Step.CHECK,))) == (6.5, 2.5)
