"""Which API and which options an endpoint takes: tried, and remembered."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.providers.openai.caps import Caps
from tests.providers.requests import request
from tests.providers.server import PATHS, Script, serving
from tests.providers.test_manual_and_replay import ANSWER, MODULE, quiet
from tests.providers.test_openai import provider

CHAT, RESPONSES = PATHS["chat"], PATHS["responses"]
CHUNK = {"choices": [{"index": 0, "delta": {"content": ANSWER}, "finish_reason": "stop"}], "usage": None}


def ask(url: str, **options: Any) -> Proposal:
    return provider(url, **options).propose(request(), quiet, threading.Event())


def test_responses_are_asked_first() -> None:
    script = Script(ANSWER, apis=("chat", "responses"))
    with serving(script) as url:
        assert ask(url).source == MODULE
    assert script.paths == [RESPONSES]


def test_chat_completions_are_asked_where_there_are_no_responses_and_this_is_remembered() -> None:
    script = Script(ANSWER)
    with serving(script) as url:
        assert ask(url).source == ask(url).source == MODULE
    assert script.paths == [RESPONSES, CHAT, CHAT]


def test_an_endpoint_that_has_changed_is_asked_anew() -> None:
    script = Script(ANSWER)
    with serving(script) as url:
        ask(url)
        script.apis = ("responses",)
        assert ask(url).source == ask(url).source == MODULE
    assert script.paths == [RESPONSES, CHAT, CHAT, RESPONSES, RESPONSES]


@pytest.mark.parametrize("status", [405, 501])
def test_other_words_for_no_such_path(status: int) -> None:
    script = Script(ANSWER, apis=("chat", "responses"), statuses=[status])
    with serving(script) as url:
        assert ask(url).source == MODULE
    assert script.paths == [RESPONSES, CHAT]


def test_a_model_without_responses() -> None:
    script = Script(
        ANSWER, apis=("chat", "responses"), statuses=[400], error="The model does not support Responses API"
    )
    with serving(script) as url:
        assert ask(url).source == MODULE
    assert script.paths == [RESPONSES, CHAT]


def test_a_gateway_that_fails_at_the_path_of_responses() -> None:
    """As LiteLLM 1.81 does for some models."""
    script = Script(ANSWER, apis=("chat", "responses"), broken=("responses",))
    with serving(script) as url:
        assert ask(url, max_retries=1).source == ask(url).source == MODULE
    assert script.paths == [RESPONSES, RESPONSES, CHAT, CHAT]


def test_a_failure_is_not_reported_as_a_missing_path() -> None:
    script = Script(ANSWER, apis=("responses",), broken=("responses",))
    with serving(script) as url, pytest.raises(ProviderError, match=r"answered 500: .*has no __aiter__"):
        ask(url, max_retries=0)


def test_an_outage_of_an_endpoint_that_has_answered_does_not_change_the_api() -> None:
    script = Script(ANSWER, apis=("chat", "responses"))
    with serving(script) as url:
        ask(url)
        script.statuses = [503]
        with pytest.raises(ProviderError, match="answered 503"):
            ask(url, max_retries=0)
    assert script.paths == [RESPONSES, RESPONSES]


@pytest.mark.parametrize("raw", [b"<html>welcome</html>", b"", b"data: [DONE]\n\n"])
def test_a_server_that_answers_every_path_with_something_else(raw: bytes) -> None:
    script = Script(apis=("chat", "responses"), raw=raw)
    with serving(script) as url, pytest.raises(ProviderError, match="ended before the answer did"):
        ask(url)
    assert script.paths == [RESPONSES, CHAT]


def test_a_server_that_answers_every_path_as_chat_completions() -> None:
    script = Script(apis=("chat", "responses"), events=[CHUNK])
    with serving(script) as url:
        assert ask(url).source == ask(url).source == MODULE
    assert script.paths == [RESPONSES, CHAT, CHAT]


def test_a_wrong_key_is_not_tried_twice() -> None:
    script = Script(apis=("chat", "responses"), statuses=[401, 401])
    with serving(script) as url, pytest.raises(ProviderError, match="refused the API key"):
        ask(url)
    assert script.paths == [RESPONSES]


def test_the_error_about_the_model_is_shown_whichever_api_has_it() -> None:
    script = Script(ANSWER)
    with serving(script) as url:
        ask(url)  # from now on Chat Completions come first
        script.statuses, script.error = [404], "model 'm' not found"
        with pytest.raises(ProviderError, match="has no model 'm'"):
            ask(url)


@pytest.mark.parametrize(
    ("refused", "message", "left_out"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options", {"stream_options"}),
        ("reasoning", "Unsupported parameter: 'reasoning.summary' is not supported with this model.", {"reasoning"}),
        ("reasoning", "Your organization must be verified to generate reasoning summaries.", {"reasoning"}),
        ("store", "Unknown parameter: 'store'.", {"store"}),
    ],
)
def test_an_option_that_is_refused_is_left_out(refused: str, message: str, left_out: set[str]) -> None:
    script = Script(ANSWER, refused={refused: message})
    script.apis = ("chat",) if refused == "stream_options" else ("responses",)
    with serving(script) as url:
        asked = provider(url)
        for _ in range(2):
            assert asked.propose(request(), quiet, threading.Event()).source == MODULE
    first, second, third = script.requests
    assert set(first) - set(second) == left_out and set(second) == set(third), "refused once only"


def test_reasoning_models_of_openai_behind_a_proxy_take_another_name_of_the_limit() -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    script = Script(ANSWER, refused={"max_tokens": message})
    with serving(script) as url:
        ask(url, caps=Caps(max_tokens=50_000))
    first, second = script.requests
    assert first["max_tokens"] == second["max_completion_tokens"] and "max_tokens" not in second


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_limit_that_the_server_refuses_is_halved(api: Any) -> None:
    script = Script(ANSWER, apis=(api,), largest_limit=40_000)
    with serving(script) as url:
        asked = provider(url, caps=Caps(max_tokens=10**6))
        for _ in range(2):
            assert asked.propose(request(), quiet, threading.Event()).source == MODULE
    limits = [max(value for name, value in r.items() if name.startswith("max_")) for r in script.requests]
    assert list(dict.fromkeys(limits)) == [128_000, 64_000, 32_000] and limits[-2:] == [32_000, 32_000]


def test_a_context_that_is_too_short_for_the_prompt_is_an_error() -> None:
    script = Script(ANSWER, largest_limit=1)
    with serving(script) as url, pytest.raises(ProviderError, match=r"answered 400: .*maximum context length is 1"):
        ask(url, caps=Caps(max_tokens=50_000))
    assert len(script.requests) < 12
