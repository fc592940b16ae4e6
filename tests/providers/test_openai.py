"""The openai provider against a real HTTP server on this machine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.providers.openai.provider import OpenAIProvider
from cutegen_lab.providers.replay import ReplayProvider
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, MODULE, quiet

KEY = "sk-secret"


APIS = pytest.mark.parametrize("api", ["chat", "responses"])


def provider(url: str, **options: Any) -> OpenAIProvider:
    return OpenAIProvider(model="m", api_key=KEY, base_url=url, **options)


@APIS
def test_a_streamed_answer_becomes_a_proposal_with_its_cost(api: Any) -> None:
    script = Script(ANSWER, apis=(api,))
    with serving(script) as url:
        proposal = provider(url).propose(request(), quiet, threading.Event())
    assert proposal.source == MODULE
    assert proposal.usage == TokenUsage(100, 50)
    assert proposal.model == "m"
    (asked,) = script.requests
    prompt = asked["messages"][0]["content"] if api == "chat" else asked["input"]
    assert asked["stream"] is True and "torch.cumsum" in prompt
    assert script.keys == [f"Bearer {KEY}"]


@APIS
def test_tokens_of_the_cache_and_of_the_reasoning_are_counted(api: Any) -> None:
    with serving(Script(ANSWER, apis=(api,), cached=64, reasoned=20)) as url:
        usage = provider(url).propose(request(), quiet, threading.Event()).usage
    assert usage == TokenUsage(100, 50, cached=64, reasoning=20)


@APIS
def test_usage_is_estimated_where_the_server_reports_none(api: Any) -> None:
    with serving(Script(ANSWER, apis=(api,), usage=None)) as url:
        usage = provider(url).propose(request(), quiet, threading.Event()).usage
    assert usage.prompt > 3000 and 0 < usage.completion < 200
    assert usage.estimated == usage.total


def test_an_answer_that_cannot_be_used_is_counted_with_the_error() -> None:
    cases = ((Script("no module"), TokenUsage(200, 100)), (Script(""), TokenUsage(100, 50)))
    for script, usage in cases:  # asked twice, asked once
        with serving(script) as url, pytest.raises(ProviderError) as raised:
            provider(url).propose(request(), quiet, threading.Event())
        assert raised.value.usage == usage
    with serving(Script(statuses=[401])) as url, pytest.raises(ProviderError) as raised:
        provider(url).propose(request(), quiet, threading.Event())
    assert raised.value.usage == TokenUsage()


def test_the_tokens_of_an_answer_are_told_while_it_is_written() -> None:
    seen = []
    with serving(Script("x = 1\n" * 400 + ANSWER)) as url:
        asked = provider(url)
        asked.propose(request(), lambda line: seen.append((line, asked.streamed)), threading.Event())
    assert seen and all(f"about {count:,} tokens" in line and count > 0 for line, count in seen)
    assert [count for _, count in seen] == sorted(count for _, count in seen)
    assert asked.streamed == 0


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (Script(statuses=[401]), "refused the API key. Check OPENAI_API_KEY"),
        (Script(statuses=[404], error="The model `m` does not exist"), "has no model 'm'. Choose another model"),
        (Script(statuses=[400], code="model_not_found"), "has no model 'm'. Choose another model"),
        (
            Script(statuses=[400], error="Invalid model name passed in model=m"),
            "has no model 'm'. Choose another model",
        ),
        (Script(apis=()), "has no /responses and no /chat/completions"),
        (Script(statuses=[404]), "Check OPENAI_BASE_URL: most end in /v1"),
        (Script(statuses=[429, 429, 429]), "still limits the rate after 1 retries"),
        (Script(statuses=[400]), "answered 400"),
        (Script(""), "empty answer"),
        (Script(ANSWER, cut=True), "ended before the answer did"),
        (Script(raw=b"data: {not json\n\n"), "could not be read"),
    ],
)
def test_what_went_wrong_is_said_in_one_line_without_the_key(script: Script, says: str) -> None:
    with serving(script) as url, pytest.raises(ProviderError) as raised:
        provider(url, max_retries=1).propose(request(), quiet, threading.Event())
    assert says in str(raised.value)
    assert KEY not in str(raised.value) and "\n" not in str(raised.value)


def test_nobody_listening() -> None:
    with serving(Script()) as url:
        pass
    with pytest.raises(ProviderError, match="cannot reach"):
        provider(url, max_retries=0).propose(request(), quiet, threading.Event())


def test_no_answer_in_time() -> None:
    with (
        serving(Script(ANSWER, stall_seconds=3)) as url,
        pytest.raises(ProviderError, match=r"did not answer within 0\.5"),
    ):
        provider(url, max_retries=0, timeout_seconds=0.5).propose(request(), quiet, threading.Event())


def test_no_key() -> None:
    with pytest.raises(ProviderError, match=r"no API key is set\. Set OPENAI_API_KEY"):
        OpenAIProvider(model="m")


def test_a_conversation_with_a_model_replays(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    with serving(Script(ANSWER, cached=64)) as url:
        first = provider(url, record=path).propose(request(), quiet, threading.Event())
    again = ReplayProvider(path).propose(request(), quiet, threading.Event())
    assert first.usage.cached == 64
    assert (again.source, again.usage, again.prompts) == (first.source, first.usage, first.prompts)
    assert KEY not in path.read_text()


def test_the_key_is_in_no_repr() -> None:
    assert KEY not in repr(provider("http://127.0.0.1:1/v1"))
