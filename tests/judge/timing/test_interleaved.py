"""Samples in turns: order, pairing, when it ends, and who may fail."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.timing.confidence import comparison, relative_half_width
from cutegen_lab.judge.timing.interleaved import Effort, InterleavedTimer, Rounds
from tests.judge.fake_stopwatch import FakeStopwatch, hang

NAMES = ["candidate", "eager PyTorch", "torch.compile"]


def clock(step: float = 0.01) -> Callable[[], float]:
    ticks = itertools.count()
    return lambda: next(ticks) * step


def turns(watch: FakeStopwatch, names: list[str] = NAMES, step: float = 0.01) -> InterleavedTimer:
    seeds = itertools.count(100)
    watch.stopwatch((), (), threading.Event())
    return InterleavedTimer(watch, names, lambda: next(seeds), threading.Event(), clock(step))


def taken(result: Rounds | Fault) -> Rounds:
    assert isinstance(result, Rounds)
    return result


def test_rounds_are_in_every_order_and_every_sample_has_a_seed_of_its_own() -> None:
    watch = FakeStopwatch(lambda inputs: inputs)
    found = taken(turns(watch).rounds("warm", 60))
    names = [name for name, _, _ in watch.log]
    rounds = Counter(tuple(names[at : at + 3]) for at in range(0, len(names), 3))
    assert set(rounds) == set(itertools.permutations(NAMES)) and sum(rounds.values()) == 61  # the first does not count
    assert {len(times) for times in found.times_us.values()} == {60}
    assert len({seed for _, _, seed in watch.log}) == len(watch.log)
    assert (found.clock, found.flush) == ("warm clock", "warm flush")


def test_it_ends_when_every_median_is_sure() -> None:
    watch = FakeStopwatch(lambda inputs: inputs, noise=0.01)
    effort = Effort(seconds=1000.0, warm_up_seconds=0.0)
    found = taken(turns(watch).converge(effort))
    assert all(relative_half_width(times) <= effort.half_width for times in found.times_us.values())
    assert effort.min_rounds < len(found.times_us["candidate"]) < 200


def test_it_ends_when_time_is_up() -> None:
    watch = FakeStopwatch(lambda inputs: inputs, noise=0.5)
    found = taken(turns(watch, step=0.1).converge(Effort(seconds=5.0, warm_up_seconds=0.0)))
    assert len(found.times_us["candidate"]) == pytest.approx(49, abs=2)
    assert relative_half_width(found.times_us["candidate"]) > 0.005


def test_it_ends_halfway_where_the_rest_could_not_be_enough() -> None:
    effort = Effort(seconds=5.0, patience=0.5, warm_up_seconds=0.0, half_width=0.0075)
    hopeless, near = (
        taken(turns(FakeStopwatch(lambda inputs: inputs, noise=noise), step=0.1).converge(effort))
        for noise in (0.5, 0.012)
    )
    assert len(hopeless.times_us["candidate"]) == pytest.approx(25, abs=2)
    assert len(near.times_us["candidate"]) > 27


def test_side_rounds_end_when_their_seconds_are_up_but_not_before_half() -> None:
    quick, slow = (
        taken(turns(FakeStopwatch(lambda inputs: inputs), step=step).rounds("warm", 8, 1.0)) for step in (0.01, 1.0)
    )
    assert len(quick.times_us["candidate"]) == 8 and len(slow.times_us["candidate"]) == 4


def test_a_steady_drift_of_a_third_leaves_ratios_alone() -> None:
    watch = FakeStopwatch(lambda inputs: inputs, noise=0.001, drift=0.002)
    found = taken(turns(watch).converge(Effort(seconds=1.0, warm_up_seconds=0.0)))
    mine = found.times_us["candidate"]
    assert max(mine) / min(mine) > 1.3
    answer = comparison("torch.compile", mine, found.times_us["torch.compile"])
    assert answer.answer == "faster" and answer.ratio == pytest.approx(0.5, rel=0.005)


def test_in_chosen_rounds_the_candidate_goes_last_and_is_looked_at_with_its_seed() -> None:
    watch, seen = FakeStopwatch(lambda inputs: inputs), list[tuple[str, int]]()

    def look(seed: int) -> None:
        seen.append((watch.log[-1][0], watch.log[-1][2] - seed))

    found = taken(turns(watch).converge(Effort(warm_up_seconds=0.0), inspected=[0, 5], inspect=look))
    assert seen == [("candidate", 0)] * 2
    assert len(found.times_us["candidate"]) == 16
    assert len(watch.log) == 3 * (1 + 16 + 2)  # a warm-up, the rounds, and one nobody counts after each look


def test_a_baseline_that_fails_is_dropped_with_its_samples() -> None:
    watch = FakeStopwatch(lambda inputs: inputs, faults={("torch.compile", 7): Fault(Verdict.OUT_OF_MEMORY, "full")})
    found = taken(turns(watch).converge(Effort(warm_up_seconds=0.0)))
    assert list(found.times_us) == ["candidate", "eager PyTorch"]
    assert found.dropped["torch.compile"].verdict is Verdict.OUT_OF_MEMORY
    assert {len(times) for times in found.times_us.values()} == {16}


def test_the_candidates_own_fault_ends_the_timing() -> None:
    watch = FakeStopwatch(lambda inputs: inputs, faults={("candidate", 9): hang()})
    assert turns(watch).converge(Effort(warm_up_seconds=0.0)) == hang()
    assert (
        turns(FakeStopwatch(lambda inputs: inputs), step=1.0).converge(
            Effort(warm_up_seconds=0.0), inspected=[0], inspect=lambda seed: hang()
        )
        == hang()
    )


def test_cancel_ends_it_at_once() -> None:
    cancel = threading.Event()
    cancel.set()
    watch = FakeStopwatch(lambda inputs: inputs)
    watch.stopwatch((), (), cancel)
    with pytest.raises(Cancelled):
        InterleavedTimer(watch, NAMES, lambda: 1, cancel).rounds("warm", 5)
    assert watch.log == []
