"""How an answer may end other than complete: each named, with what it cost and what to do next."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.hints import Advice
from cutegen_lab.providers.openai.caps import Caps
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, quiet
from tests.providers.test_openai import APIS, KEY, provider


def failure(script: Script, **options: Any) -> ProviderError:
    with serving(script) as url, pytest.raises(ProviderError) as raised:
        provider(url, **options).propose(request(), quiet, threading.Event())
    assert len(script.requests) == 1, "the model is not asked once more"
    return raised.value


@APIS
@pytest.mark.parametrize(
    ("how", "says", "advice"),
    [
        ({"finish": "length"}, "m was cut off at the server's maximum length. Raise the server's limit", None),
        ({"finish": "content_filter"}, "a content filter stopped the answer of m. Change the names", None),
        ({"refusal": "I can't help.", "answer": ""}, "m refused to answer: I can't help", Advice.OTHER_MODEL),
        ({"refusal": f"no\x1b {KEY}"}, r"m refused to answer: no\x1b ***", Advice.OTHER_MODEL),
        ({"cut": True}, "the stream from m ended before the answer did. Retry", None),
    ],
)
def test_an_ending(api: Any, how: dict[str, Any], says: str, advice: Advice | None) -> None:
    error = failure(Script(**{"answer": ANSWER, "apis": (api,), **how}))
    assert says in str(error)
    assert (error.hint.code if error.hint else None) is advice
    if "cut" in how:
        assert error.usage.estimated == error.usage.total > 3000
    else:
        assert error.usage == TokenUsage(100, 50)


@APIS
def test_an_answer_that_the_cap_cuts_off(api: Any) -> None:
    error = failure(Script(ANSWER, apis=(api,), finish="length"), caps=Caps(max_tokens=15_000))
    assert "tokens, which is all that the run's caps leave" in error.message
    assert "Raise the cap of tokens or dollars" in str(error)


def test_the_servers_limit_is_named_where_it_is_smaller_than_the_cap() -> None:
    script = Script(ANSWER, largest_limit=70_000, finish="length")
    with serving(script) as url, pytest.raises(ProviderError, match=r"server's maximum length \(64,000 tokens\)"):
        provider(url, caps=Caps(max_tokens=10**6)).propose(request(), quiet, threading.Event())


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (
            {"type": "error", "code": "server_error", "message": f"out of {KEY}"},
            r"failed during the answer: out of \*\*\*",
        ),
        ({"type": "response.failed", "response": {"error": {"code": "x", "message": "no GPU"}}}, "answer: no GPU"),
        ({"type": "response.failed", "response": {"error": None}}, "the response failed"),
        ({"type": "response.incomplete", "response": {"incomplete_details": None}}, "ended before the answer did"),
    ],
)
def test_a_failure_within_the_stream(event: Any, says: str) -> None:
    error = failure(Script(apis=("responses",), events=[event]))
    assert error.usage.prompt > 3000
    with pytest.raises(ProviderError, match=says):
        raise error


@pytest.mark.parametrize("finish", ["abort", "error"])
def test_an_answer_that_the_server_aborts_is_not_used(finish: str) -> None:
    assert "ended before the answer did" in str(failure(Script(ANSWER, finish=finish)))


def test_reasoning_without_an_answer_is_an_empty_answer() -> None:
    assert "empty answer" in str(failure(Script("<think>never said", reasoning="hm")))
