"""Caps in tokens and dollars hold for every server that keeps to the number of tokens that it is asked for."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.cost import Price
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.hints import Advice
from cutegen_lab.providers.openai.caps import MIN_ANSWER_TOKENS, Caps
from cutegen_lab.providers.openai.token_count import FRAMING_TOKENS, estimated_tokens, most_tokens
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, quiet
from tests.providers.test_openai import APIS, provider

USAGE = st.builds(TokenUsage, st.integers(0, 10**6), st.integers(0, 10**6))
USD = st.integers(0, 500 * 10**6).map(lambda millionths: millionths / 1e6)


@given(st.integers(0, 10**6), USAGE, st.integers(0, 10**5))
def test_no_answer_within_the_limit_exceeds_the_token_cap(cap: int, spent: TokenUsage, prompt: int) -> None:
    try:
        limit = Caps(max_tokens=cap).answer_tokens(spent, prompt)
    except ProviderError as error:
        assert spent.total + prompt + MIN_ANSWER_TOKENS > cap
        assert error.hint is not None and error.hint.code is Advice.MORE_TOKENS
    else:
        assert limit is not None and limit >= MIN_ANSWER_TOKENS
        assert (spent + TokenUsage(prompt, limit)).total == cap


@given(st.floats(0.0001, 100), USD, USD, USAGE, st.integers(0, 10**5))
def test_no_answer_within_the_limit_exceeds_the_dollar_cap(
    cap: float, sent: float, received: float, spent: TokenUsage, prompt: int
) -> None:
    price = Price(sent, received)
    try:
        limit = Caps(max_usd=cap, price=price).answer_tokens(spent, prompt)
    except ProviderError:
        assert price.usd(spent + TokenUsage(prompt, MIN_ANSWER_TOKENS)) > cap
    else:
        assert limit is None or price.usd(spent + TokenUsage(prompt, limit)) <= cap + 2e-9


def test_the_smaller_cap_counts() -> None:
    caps = Caps(10_000, 1.0, Price(0, 1000))
    assert caps.answer_tokens(TokenUsage(), 1000) == 1000
    assert Caps(1500, 1.0, Price(0, 1000)).answer_tokens(TokenUsage(), 1000) == 500
    assert Caps().answer_tokens(TokenUsage(10**9), 10**9) is None


def test_a_cap_that_is_too_small_for_the_prompt_sends_nothing() -> None:
    script = Script(ANSWER)
    for caps, says in (
        (Caps(max_tokens=10), r"token cap is reached: 10 tokens are left, and the next prompt may have 1\d,\d\d\d\."),
        (Caps(max_usd=0.001, price=Price(1, 1)), r"cap in dollars is reached: \$0\.0010 is left, .* may cost \$0\.01"),
    ):
        with serving(script) as url, pytest.raises(ProviderError, match=says) as raised:
            provider(url, caps=caps).propose(request(), quiet, threading.Event())
        assert raised.value.usage == TokenUsage()
    assert script.paths == []


@APIS
def test_the_server_is_asked_for_at_most_what_the_cap_leaves(api: Any) -> None:
    script = Script("no module", apis=(api,), usage=(3000, 1000))
    with serving(script) as url:
        asked = provider(url, caps=Caps(max_tokens=40_000))
        with pytest.raises(ProviderError, match="twice"):
            asked.propose(request(), quiet, threading.Event())
    name = "max_tokens" if api == "chat" else "max_output_tokens"
    prompts = [r["messages"][0]["content"] if api == "chat" else r["input"] for r in script.requests]
    assert [r[name] for r in script.requests] == [
        40_000 - spent - most_tokens(prompt, "m") for spent, prompt in zip((0, 4000), prompts, strict=True)
    ]


def test_a_server_that_ignores_the_limit_is_cut_off() -> None:
    with serving(Script("word " * 40_000)) as url:
        asked = provider(url, caps=Caps(max_tokens=20_000))
        with pytest.raises(
            ProviderError, match=r"did not stop at the [78],\d\d\d tokens that it was asked for"
        ) as raised:
            asked.propose(request(), quiet, threading.Event())
    assert raised.value.usage.completion < 20_000 and asked.spent == raised.value.usage


def test_an_unfinished_answer_counts() -> None:
    with serving(Script(ANSWER, cut=True)) as url:
        asked = provider(url, caps=Caps(max_tokens=60_000))
        for _ in range(2):
            with pytest.raises(ProviderError, match="ended before"):
                asked.propose(request(), quiet, threading.Event())
    assert asked.spent.prompt > 6000 and asked.spent.estimated == asked.spent.total


def test_a_prompt_has_at_most_one_token_for_each_byte() -> None:
    assert most_tokens("1 2 3 ≥", "m") == 9 + FRAMING_TOKENS
    assert estimated_tokens(1000) == 400


def test_tiktoken_counts_where_it_knows_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def encoding_for_model(model: str) -> SimpleNamespace:
        if model != "gpt-5":
            raise KeyError(model)
        return SimpleNamespace(encode=lambda text, disallowed_special: text.split())

    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(encoding_for_model=encoding_for_model))
    assert most_tokens("three short words", "gpt-5") == 3 + FRAMING_TOKENS
    assert most_tokens("three short words", "llama") == 17 + FRAMING_TOKENS
