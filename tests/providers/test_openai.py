"""The openai provider against a real HTTP server on this machine."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.errors import Cancelled, ProviderError
from cutegen_lab.providers.openai import OpenAIProvider
from cutegen_lab.providers.replay import ReplayProvider
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, MODULE, quiet

KEY = "sk-secret"


def provider(url: str, **options: Any) -> OpenAIProvider:
    return OpenAIProvider(model="m", api_key=KEY, base_url=url, **options)


def test_a_streamed_answer_becomes_a_proposal_with_its_cost() -> None:
    script = Script(ANSWER)
    with serving(script) as url:
        proposal = provider(url).propose(request(), quiet, threading.Event())
    assert proposal.source == MODULE
    assert proposal.usage == TokenUsage(100, 50)
    assert proposal.model == "m"
    assert script.requests[0]["stream"] is True and "torch.cumsum" in script.requests[0]["messages"][0]["content"]
    assert script.keys == [f"Bearer {KEY}"]


def test_usage_is_estimated_where_the_server_reports_none() -> None:
    with serving(Script(ANSWER, usage=None)) as url:
        usage = provider(url).propose(request(), quiet, threading.Event()).usage
    assert usage.prompt > 1000 and 0 < usage.completion < 200


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


def test_rate_limits_are_retried() -> None:
    script = Script(ANSWER, statuses=[429, 500])
    with serving(script) as url:
        assert provider(url).propose(request(), quiet, threading.Event()).source == MODULE
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (Script(statuses=[401]), "refused the API key. Check OPENAI_API_KEY"),
        (Script(statuses=[404]), "has no model 'm'. Choose another model"),
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


def test_the_token_cap_is_hard() -> None:
    script = Script(ANSWER)
    with serving(script) as url:
        capped = provider(url, max_tokens=10)
        with pytest.raises(ProviderError, match="token cap of 10 is reached"):
            capped.propose(request(), quiet, threading.Event())
    assert script.requests == []


def test_the_cap_also_ends_a_stream() -> None:
    with serving(Script("word " * 40_000)) as url, pytest.raises(ProviderError, match="token cap"):
        provider(url, max_tokens=10_000).propose(request(), quiet, threading.Event())


def test_cancel_ends_a_slow_stream() -> None:
    cancel = threading.Event()
    threading.Timer(0.4, cancel.set).start()
    started = time.monotonic()
    with serving(Script(ANSWER, stall_seconds=0.5)) as url:
        with pytest.raises(Cancelled):
            provider(url).propose(request(), quiet, cancel)
        assert time.monotonic() - started < 1.4


def test_a_cancelled_request_is_not_tried_again() -> None:
    cancel = threading.Event()
    script = Script(ANSWER, statuses=[429] * 20, retry_after=1)
    with serving(script) as url:
        threading.Timer(0.3, cancel.set).start()
        with pytest.raises(Cancelled):
            provider(url, max_retries=20).propose(request(), quiet, cancel)
        asked = len(script.requests)
        time.sleep(2.5)
    assert len(script.requests) == asked


def test_a_conversation_with_a_model_replays(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    with serving(Script(ANSWER)) as url:
        first = provider(url, record=path).propose(request(), quiet, threading.Event())
    again = ReplayProvider(path).propose(request(), quiet, threading.Event())
    assert (again.source, again.usage, again.prompts) == (first.source, first.usage, first.prompts)
    assert KEY not in path.read_text()


def test_the_key_is_in_no_repr() -> None:
    assert KEY not in repr(provider("http://127.0.0.1:1/v1"))
