"""The strategy "auto": templates first, then a model."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import Cancelled, CutegenError, NotCovered, ProviderError, ProviderExhausted
from cutegen_lab.core.protocols import Cancel, GenerateRequest, Say
from cutegen_lab.providers.auto import AutoProvider
from tests.providers.requests import attempt, request

NEVER = threading.Event()


class Asked:
    def __init__(self, name: str, error: CutegenError | None = None) -> None:
        self.name, self.error, self.count = name, error, 0
        self.last: GenerateRequest | None = None

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        self.count, self.last = self.count + 1, request
        if self.error:
            raise self.error
        return Proposal("def launch(x, stream):\n    pass\n", self.name)


def templates_parent() -> GenerateRequest:
    found = attempt()
    return request("refine", replace(found, candidate=replace(found.candidate, provider="templates")))


def said(provider: AutoProvider, asked: GenerateRequest) -> tuple[Proposal, list[str]]:
    lines: list[str] = []
    return provider.propose(asked, lines.append, NEVER), lines


def test_templates_propose_first_and_refine_their_own() -> None:
    provider = AutoProvider(Asked("templates"), Asked("openai"))
    assert provider.name == "openai"
    for asked in (request(), templates_parent()):
        found, _ = said(provider, asked)
        assert (found.title, found.provider) == ("templates", "templates")


@pytest.mark.parametrize(
    "asked",
    [
        replace(templates_parent(), kind="fix"), replace(templates_parent(), feedback="use TMA"),
        replace(request(), language="spec"), request("refine", attempt()),
    ],
)  # fmt: skip
def test_the_rest_goes_to_the_model(asked: GenerateRequest) -> None:
    templates = Asked("templates")
    found, _ = said(AutoProvider(templates, Asked("openai")), asked)
    assert (found.title, found.provider, templates.count) == ("openai", "", 0)


def test_a_problem_that_templates_do_not_cover_is_read_once() -> None:
    templates = Asked("templates", NotCovered("aten.sort is not covered"))
    provider = AutoProvider(templates, Asked("openai"))
    found, lines = said(provider, request())
    assert found.title == "openai" and lines[0].startswith("aten.sort is not covered")
    said(provider, request())
    assert templates.count == 1


def test_templates_at_their_floor_are_asked_again_for_another_of_their_kernels_only() -> None:
    templates = Asked("templates", ProviderExhausted("c1 is at the floor"))
    provider, asked = AutoProvider(templates, Asked("openai")), templates_parent()
    for _ in range(2):
        assert said(provider, asked)[0].title == "openai" and templates.count == 1
    assert asked.parent is not None
    other = replace(asked.parent, candidate=replace(asked.parent.candidate, id="c2"))
    assert said(provider, replace(asked, parent=other))[0].title == "openai" and templates.count == 2


def test_an_analysts_wish_is_the_models_once_nothing_gains() -> None:
    templates = Asked("templates")
    said(AutoProvider(templates, Asked("openai")), replace(templates_parent(), wanted=True))
    assert templates.last is not None and not templates.last.wanted


@pytest.mark.parametrize("error", [Cancelled(), ProviderError("no key")])
def test_the_models_errors_are_the_runs(error: CutegenError) -> None:
    provider = AutoProvider(Asked("templates", NotCovered("no")), Asked("openai", error))
    with pytest.raises(type(error)):
        said(provider, request())
