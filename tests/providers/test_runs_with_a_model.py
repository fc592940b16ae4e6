"""Runs whose model or endpoint is bad: each says why it ended, the caps hold, and the next run goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.config import Settings
from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.cost import Price, tokens
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.run import Budget, RunSettings, Step
from cutegen_lab.providers.openai.caps import Caps
from cutegen_lab.providers.openai.token_count import most_tokens
from cutegen_lab.session import Session
from tests.loop.scripted import PROBLEM, ScriptedCompiler, ScriptedDevice, ScriptedJudge
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, quiet
from tests.providers.test_openai import provider

NONSENSE = "As a large language model I like kernels."


def opened(folder: Path, url: str) -> Session:
    """A session whose provider ``openai`` asks the server at ``url``, over scripted parts."""
    scripted: dict[str, Any] = {"compiler": ScriptedCompiler(), "judge": ScriptedJudge()}
    return Session.open(
        folder,
        settings=Settings.from_environment({"OPENAI_API_KEY": "sk-1234567", "OPENAI_BASE_URL": url}),
        device=lambda kind: ScriptedDevice(),  # type: ignore[arg-type, return-value]
        workloads=lambda problem, device: problem.check_workloads,
        **scripted,
    )


def settings(**options: Any) -> RunSettings:
    return RunSettings(provider="openai", model="m", auto=True, **options)


def test_twenty_answers_of_nonsense_are_named_and_counted() -> None:
    script = Script(NONSENSE, cached=10)
    with serving(script) as url:
        asked, spent = provider(url, caps=Caps(max_tokens=60_000)), TokenUsage()
        for _ in range(10):
            with pytest.raises(ProviderError, match=r"openai: .* no fenced code block, twice") as raised:
                asked.propose(request(), quiet, threading.Event())
            spent += raised.value.usage
        assert len(script.requests) == 20
        assert asked.spent == spent == TokenUsage(2000, 1000, cached=200)
        script.answer = ANSWER
        assert asked.propose(request(), quiet, threading.Event()).title == "by hand"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (Script(NONSENSE), "no fenced code block, twice"),
        (Script(statuses=[401] * 99), "refused the API key"),
        (Script(apis=()), "has no /responses and no /chat/completions"),
        (Script(ANSWER, finish="length"), "was cut off"),
        (Script(ANSWER, finish="content_filter"), "a content filter stopped"),
    ],
)
def test_a_bad_model_ends_its_run_and_the_next_run_goes_on(tmp_path: Path, script: Script, says: str) -> None:
    good = Script("Title: t\nReason: r\nPredicted effect: e\n\n```python\ndef launch(x): ...\n```")
    with serving(script) as url, opened(tmp_path, url) as session:
        bad = session.run(PROBLEM, settings(budget=Budget(max_steps=1)))
        assert bad.state.finished and says in bad.state.problem_note, bad.state.problem_note
        answered = len(script.requests) if script.answer else 0
        assert tokens(bad.state) == TokenUsage(100 * answered, 50 * answered)
        with serving(good) as other:
            run = session.run(PROBLEM, settings(budget=Budget(max_steps=1)), provider=provider(other))
        assert run.state.candidates


def test_nobody_listening_ends_the_run(tmp_path: Path) -> None:
    with serving(Script()) as url:
        pass
    with opened(tmp_path, url) as session:
        state = session.run(PROBLEM, settings(), provider=provider(url, max_retries=0)).state
    assert state.finished and "cannot reach" in state.problem_note and tokens(state) == TokenUsage()


def test_a_resumed_run_keeps_its_caps(tmp_path: Path) -> None:
    """Also what failed answers cost in the session before."""
    script = Script(NONSENSE, usage=(10_000, 1_000))
    budget, price = Budget(max_tokens=60_000, max_usd=1.0), Price(10, 100, 1)
    with serving(script) as url:
        with opened(tmp_path, url) as session:
            first = RunSettings(provider="openai", model="m", budget=budget, price=price)
            run = session.run(PROBLEM, first)
            assert run.state.step is Step.REVIEW and tokens(run.state).total == 22_000
        with opened(tmp_path, url) as session:
            again = session.attach(run.run_id)
            again.retry()
            again.wait(10)
    prompt = script.requests[2]["messages"][0]["content"]
    by_dollars = int(
        (1.0 - price.usd(TokenUsage(20_000, 2_000)) - price.usd(TokenUsage(most_tokens(prompt, "m")))) * 1e4
    )
    assert script.requests[2]["max_tokens"] == pytest.approx(by_dollars, abs=1)
    assert by_dollars < 60_000 - 22_000 - most_tokens(prompt, "m")
