"""The two-stage strategy: a search sets the values of a kernel that a model wrote."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cutegen_lab.core.candidate import Config, Proposal
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.notes import Note
from cutegen_lab.core.protocols import Attempt, Cancel, GenerateRequest, Say
from cutegen_lab.core.syntax import with_launch_defaults
from cutegen_lab.providers.two_stage import SEARCH, TwoStageProvider
from tests.providers.requests import attempt, request

SOURCE = """TUNABLE = {"vec": (1, 2, 4, 8), "threads": (64, 128, 256)}


def launch(x, y, stream, *, vec: int = 2, threads=128):  # µs
    pass
"""
NEVER = threading.Event()


class Model:
    """Counts what it is asked."""

    name = "model"

    def __init__(self) -> None:
        self.asked: list[GenerateRequest] = []

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        self.asked.append(request)
        return Proposal(SOURCE, f"answer {len(self.asked)}")


class Times:
    """Predicted times by formula: the fastest is vec=8, threads=64; vec=4 does not run."""

    def __init__(self, flat: bool = False) -> None:
        self.flat, self.seen = flat, []

    def __call__(
        self, request: GenerateRequest, kernels: Sequence[tuple[str, Config]], say: Say, cancel: Cancel
    ) -> list[float | None]:
        self.seen += [dict(config) for _, config in kernels]
        return [self.of(config) for _, config in kernels]

    def of(self, config: Config) -> float | None:
        if self.flat:
            return 12.5
        vec, threads = int(config["vec"]), int(config["threads"])
        return None if vec == 4 else 7.5 + 8 / vec + abs(threads - 64) / 64


def passed(source: str = SOURCE, **changes: object) -> Attempt:
    found = attempt(source=source)
    proposal = replace(found.candidate.proposal, **changes)  # type: ignore[arg-type]
    return replace(found, candidate=replace(found.candidate, proposal=proposal))


def by_search(found: Attempt) -> Attempt:
    return replace(found, candidate=replace(found.candidate, provider=SEARCH))


def refined(provider: TwoStageProvider, parent: Attempt, **changes: object) -> Proposal:
    said: list[str] = []
    return provider.propose(replace(request("refine", parent), **changes), said.append, NEVER)  # type: ignore[arg-type]


def test_a_search_sets_the_values_once_and_then_the_model_is_asked() -> None:
    model, times = Model(), Times()
    provider = TwoStageProvider(model, times)
    assert provider.propose(request(), lambda line: None, NEVER).title == "answer 1" and model.asked[0].searched
    found = refined(provider, passed())
    assert (found.title, found.provider) == ("vec 2 → 8, threads 128 → 64", SEARCH)
    assert found.source == SOURCE.replace("= 2,", "= 8,").replace("threads=128)", "threads=64)")
    assert found.predicted_effect == "32.0% less time than c1: 8.5 µs predicted"
    assert len(times.seen) <= 16 and {"vec": 2, "threads": 128} not in times.seen  # its time is known
    assert refined(provider, by_search(passed(found.source))).title == "answer 2"
    assert refined(provider, passed(SOURCE + "# another structure\n")).title == "vec 2 → 8, threads 128 → 64"


def test_a_resumed_run_does_not_search_again() -> None:
    searched = by_search(passed(with_launch_defaults(SOURCE, {"vec": 8})))
    parent = passed()
    fresh = TwoStageProvider(Model(), Times())
    assert refined(fresh, parent, history=(parent, searched)).title == "answer 1"


def test_a_resumed_run_does_not_search_in_vain_again() -> None:
    parent, times = passed(), Times()
    child = replace(parent, candidate=replace(parent.candidate, id="c2", parent_id="c1", provider="model"))
    assert refined(TwoStageProvider(Model(), times), parent, history=(parent, child)).title == "answer 1"
    assert not times.seen


def test_a_search_that_was_cancelled_is_done_again() -> None:
    def cancelled(*_: object) -> list[float | None]:
        raise Cancelled()

    provider = TwoStageProvider(Model(), cancelled)
    for _ in range(2):
        with pytest.raises(Cancelled):
            refined(provider, passed())


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "def launch(x, y, stream):\n    pass\n"},
        {"source": SOURCE.replace("(1, 2, 4, 8)", "(2,)").replace("(64, 128, 256)", "(128,)")},
        {"source": SOURCE.replace("TUNABLE = {", "TUNABLE = dict(a=")},
        {"spec": "kernel scan for sm_90a\n"},
    ],
)
def test_what_cannot_be_searched_goes_to_the_model(changes: dict[str, str]) -> None:
    assert refined(TwoStageProvider(Model(), Times()), passed(**changes)).title == "answer 1"


def test_nothing_to_gain_goes_to_the_model() -> None:
    times = Times(flat=True)
    assert refined(TwoStageProvider(Model(), times), passed()).title == "answer 1"
    assert times.seen


def test_the_analysts_reason_goes_to_the_model_and_so_does_a_failure() -> None:
    provider = TwoStageProvider(Model(), Times())
    assert refined(provider, passed(), feedback="use TMA").title == "answer 1"
    failed = provider.propose(request("fix", passed()), lambda line: None, NEVER)
    assert failed.title == "answer 2"


def test_pins_bind_the_search() -> None:
    parent = passed()
    pin = Note("n1", parent.candidate.id, "", 0, 0, "vec = 2", "vec", True)
    times = Times()
    found = refined(TwoStageProvider(Model(), times), parent, notes=(pin,))
    assert found.title == "threads 128 → 64" and {config["vec"] for config in times.seen} == {2}


def test_values_of_the_config_are_those_that_count() -> None:
    parent = passed(config={"vec": 1, "other": "x"})
    found = refined(TwoStageProvider(Model(), Times()), parent)
    assert found.config == {"vec": 8, "other": "x"} and "vec: int = 8" in found.source


def test_defaults_are_replaced_and_nothing_else() -> None:
    text = "é = 'µ'\ndef launch(a, b=(1,\n  2), *, c='x', d):  # µ\n    pass\n"
    assert with_launch_defaults(text, {"b": 3, "c": "yy", "d": 1, "z": 1}) == text.replace("(1,\n  2)", "3").replace(
        "'x'", "'yy'"
    )
    assert with_launch_defaults("x = 1\n", {"x": 2}) == "x = 1\n"
