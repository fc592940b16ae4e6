"""What the templates propose when they know what a change would gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log2

import pytest

from cutegen_lab.core.candidate import Config, Proposal
from cutegen_lab.core.errors import InputError, ProviderError, ProviderExhausted
from cutegen_lab.core.protocols import Attempt, Cancel, GenerateRequest, Say
from cutegen_lab.core.trial import Timing
from cutegen_lab.cutespec.build import compile_text
from cutegen_lab.providers.templates import TemplatesProvider, first_config
from tests.templates.test_provider import attempt, first, proposed

NAIVE = {"vec": 1, "threads_per_row": 32}
Model = Callable[[Config], float | None]


class Forecasting:
    """A forecast by a formula, which remembers what it was asked."""

    def __init__(self, model: Model) -> None:
        self.model, self.asked = model, list[list[Config]]()

    def __call__(
        self, request: GenerateRequest, kernels: Sequence[tuple[str, Config]], say: Say, cancel: Cancel
    ) -> list[float | None]:
        assert all("def launch(" in source for source, _ in kernels)
        self.asked.append([config for _, config in kernels])
        return [self.model(config) for _, config in kernels]


def timed(number: int, proposal: Proposal, time_us: float, kind: str = "predicted") -> Attempt:
    plain = attempt(number, proposal)
    assert plain.trial is not None
    timing = Timing(kind, time_us, "", "H200")  # type: ignore[arg-type]
    return replace(plain, trial=replace(plain.trial, timing=timing))


def by_width(config: Config) -> float:
    """Fastest with 8 elements a load and 256 threads a row."""
    return 10.0 + 5 * abs(log2(config["vec"]) - 3) + abs(int(config["threads_per_row"]) - 256) / 8


def refine(provider: TemplatesProvider, *history: Attempt, wanted: bool = False) -> Proposal:
    request = replace(first(), kind="refine", parent=history[-1], history=history, wanted=wanted)
    return proposed(provider, request)


def test_each_refinement_is_the_fastest_by_prediction_and_says_by_how_much() -> None:
    forecast = Forecasting(by_width)
    provider = TemplatesProvider(NAIVE, forecast=forecast)
    start = proposed(provider, first())
    assert [start.config[name] for name in NAIVE] == [1, 32]
    history, gains = [timed(1, start, by_width(start.config))], []
    with pytest.raises(ProviderExhausted, match=r"^c\d+ is at the floor of its template: none of \d+ neighbouring"):
        for number in range(2, 40):
            found = refine(provider, *history)
            us = by_width(found.config)
            assert us == min(map(by_width, forecast.asked[-1]))
            before = by_width(history[-1].candidate.config)
            assert (
                found.predicted_effect == f"{1 - us / before:.1%} less time than c{number - 1}: {us:.3g} µs predicted"
            )
            gains.append(us / before)
            history.append(timed(number, found, us))
    assert {name: history[-1].candidate.config[name] for name in NAIVE} == {"vec": 8, "threads_per_row": 256}
    assert max(gains) < 0.99


def test_what_gains_nothing_is_proposed_only_when_the_analyst_wants_it() -> None:
    provider = TemplatesProvider(forecast=Forecasting(by_width))
    start = timed(1, proposed(provider, first()), 10.0)
    with pytest.raises(ProviderExhausted, match="at the floor"):
        refine(provider, start)
    found = refine(provider, start, wanted=True)
    assert found.predicted_effect == "as much time as c1: 10 µs predicted; no neighbour is predicted to gain"


def test_a_parent_whose_time_is_measured_or_unknown_is_predicted_too() -> None:
    for parent_of in (lambda p: timed(1, p, 3.0, "measured"), lambda p: attempt(1, p)):
        forecast = Forecasting(by_width)
        provider = TemplatesProvider(NAIVE, forecast=forecast)
        parent = parent_of(proposed(provider, first()))
        assert "less time than c1" in refine(provider, parent).predicted_effect
        assert forecast.asked[0][-1] == parent.candidate.config


def test_one_that_does_not_run_is_not_proposed_and_without_predictions_the_order_stands() -> None:
    broken = TemplatesProvider(NAIVE, forecast=Forecasting(lambda c: None if c["vec"] != 1 else by_width(c)))
    start = timed(1, proposed(broken, first()), by_width(NAIVE))
    assert "vec" not in refine(broken, start).title
    blind = TemplatesProvider(NAIVE, forecast=Forecasting(lambda c: None))
    found = refine(blind, start)
    assert found.title == refine(TemplatesProvider(NAIVE), start).title
    assert "could not be predicted" in found.predicted_effect


def test_only_what_costs_nothing_is_foreseeable() -> None:
    assert TemplatesProvider().foreseeable
    assert not TemplatesProvider(forecast=Forecasting(by_width)).foreseeable


def test_parameters_of_the_first_kernel_are_read_and_wrong_ones_named() -> None:
    assert first_config("vec=1, threads_per_row=32") == NAIVE and first_config("") is None
    assert first_config("schedule=pingpong") == {"schedule": "pingpong"}
    with pytest.raises(InputError, match="'vec' is not parameter=value"):
        first_config("vec")
    with pytest.raises(ProviderError, match=r"row reduction template has no parameter tile_m; it has vec"):
        proposed(TemplatesProvider({"tile_m": 64}), first())
    with pytest.raises(ProviderError, match="no config of the row reduction template serves"):
        proposed(TemplatesProvider({"threads_per_row": 1024, "rows_per_block": 16}), first())


# --- the config shown is the one that runs ---

PRODUCT = "def reference(a, b):\n    return a @ b\n"
LARGE = "a: bf16[4096,4096], b: bf16[4096,4096]"


def test_stages_that_are_shown_are_those_that_fit() -> None:
    provider, request = TemplatesProvider(), first(PRODUCT, LARGE)
    start = proposed(provider, request)
    stages = start.config["stages"]
    assert stages < 8 and f"stages {stages}" in start.title
    assert f"stages: cutlass.Constexpr = {stages}," in start.source
    asked = proposed(TemplatesProvider({"tile_m": 128, "tile_n": 256, "tile_k": 64, "stages": 8}), request)
    assert asked.config["stages"] == 4, "four of 48 KiB in 227"


def test_a_move_never_gives_the_same_kernel_and_frees_room_for_stages() -> None:
    provider, request = TemplatesProvider(), first(PRODUCT, LARGE)
    history = [attempt(1, proposed(provider, request))]
    with pytest.raises(ProviderExhausted):
        for number in range(2, 40):
            asked = replace(request, kind="refine", parent=history[0], history=tuple(history))
            history.append(attempt(number, proposed(provider, asked)))
    titles = {each.candidate.proposal.title for each in history[1:]}
    assert {"tile_m 128 → 64, stages 4 → 5", "tile_k 64 → 128, stages 4 → 2", "stages 4 → 3"} <= titles
    assert "stages 4 → 8" not in titles, "the same kernel"
    for each in history:
        assert f"stages: cutlass.Constexpr = {each.candidate.config['stages']}," in each.candidate.source


SPEC = "kernel k\nin x: bf16[256, 4096]\nin w: bf16[512, 4096]\nout y: bf16 = {}\ntile {}\nstages 8\n"


@pytest.mark.parametrize(
    ("value", "tile", "family"),
    [
        ("x @ w.T", "128x256x64", "matrix product"),
        ("softmax(x @ w.T, dim=-1)", "128x192x64\ncluster 1x3", "matrix product and row reduction"),
    ],
)
def test_a_spec_with_more_stages_than_fit_shows_those_that_run(value: str, tile: str, family: str) -> None:
    text = SPEC.format(value, tile)
    kernel = compile_text(text.replace("out y", "step one\nout y") if "softmax" in value else text)
    stages = kernel.config["stages"]
    assert kernel.family == family and isinstance(stages, int) and 2 <= stages < 7
    assert f"stages: cutlass.Constexpr = {stages}," in kernel.source
    assert not kernel.template.feasible({**kernel.config, "stages": stages + 1}), "one more does not fit"
