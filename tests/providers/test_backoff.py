"""When a request is sent again: rate limits, failures of the server, Retry-After."""

from __future__ import annotations

import threading
import time
from email.utils import formatdate

import httpx
import openai
import pytest

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.providers.openai.backoff import asked_seconds, wait_seconds
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, MODULE, quiet
from tests.providers.test_openai import provider


def refused(status: int = 429, code: str = "", **headers: str) -> openai.APIStatusError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(status, headers=names, request=httpx.Request("POST", "http://h"))
    return openai.APIStatusError("x", response=response, body={"code": code})  # type: ignore[arg-type]


def test_rate_limits_and_failures_are_tried_again_and_said() -> None:
    script, said = Script(ANSWER, statuses=[429, 500]), list[str]()
    with serving(script) as url:
        assert provider(url).propose(request(), said.append, threading.Event()).source == MODULE
    assert len(script.requests) == 3
    assert [line for line in said if f"{url} answered 429; trying again in 0." in line and "(1 of 3)" in line]
    assert [line for line in said if f"{url} answered 500; trying again in 1." in line and "(2 of 3)" in line]


def test_retry_after_is_honoured() -> None:
    script = Script(ANSWER, statuses=[429], retry_after="1")
    with serving(script) as url:
        provider(url).propose(request(), quiet, threading.Event())
    first, second = script.times
    assert 1.0 <= second - first < 2.0


def test_a_longer_wait_than_the_maximum_is_reported() -> None:
    script = Script(ANSWER, statuses=[429] * 4, retry_after="3600")
    with serving(script) as url, pytest.raises(ProviderError, match=r"asks to wait 3,600 s\. Wait that long"):
        provider(url).propose(request(), quiet, threading.Event())
    assert len(script.requests) == 1


def test_an_account_without_credit_is_not_asked_again() -> None:
    script = Script(ANSWER, statuses=[429] * 4, code="insufficient_quota")
    with serving(script) as url, pytest.raises(ProviderError, match=r"quota of the key at .* is used up\. Add credit"):
        provider(url).propose(request(), quiet, threading.Event())
    assert len(script.requests) == 1


def test_a_request_that_may_have_been_processed_is_not_sent_twice_and_counts() -> None:
    script = Script(ANSWER, deaf=True)
    with serving(script) as url:
        asked = provider(url, timeout_seconds=0.3)
        with pytest.raises(ProviderError, match="did not answer within") as raised:
            asked.propose(request(), quiet, threading.Event())
    assert len(script.requests) == 1
    assert raised.value.usage.prompt > 3000 and asked.spent == raised.value.usage


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0), ({"retry_after": "0.5"}, 0.5), ({"retry_after_ms": "1500"}, 1.5),
        ({"retry_after": "-3"}, 0.0), ({"retry_after": "nan"}, 0.0), ({"retry_after": "inf"}, 0.0),
        ({"retry_after": "soon"}, 0.0), ({"retry_after": "1e999"}, 0.0), ({}, 0.0),
    ],
)  # fmt: skip
def test_retry_after_in_each_form(headers: dict[str, str], seconds: float) -> None:
    assert asked_seconds(refused(**headers)) == seconds


def test_retry_after_as_a_date() -> None:
    date = formatdate(time.time() + 60, usegmt=True)
    assert asked_seconds(refused(retry_after=date)) == pytest.approx(60, abs=2)
    assert asked_seconds(refused(retry_after=formatdate(0, usegmt=True))) == 0.0


def test_waits_double_up_to_a_maximum_with_jitter() -> None:
    for failures, least in ((1, 0.5), (2, 1.0), (3, 2.0), (9, 8.0), (5000, 8.0)):
        waits = [wait_seconds(refused(), failures) for _ in range(50)]
        assert all(wait is not None and least <= wait <= 1.25 * least for wait in waits)
        assert len(set(waits)) > 1
    waits = [wait_seconds(refused(retry_after="10"), 1) for _ in range(50)]
    assert all(wait is not None and 10 <= wait <= 12.5 for wait in waits), "never earlier than the server asked"


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (refused(408), True), (refused(503), True), (refused(400), False), (refused(401), False), (refused(501), False),
        (refused(400, x_should_retry="true"), True), (refused(500, x_should_retry="false"), False),
        (refused(429, retry_after="121"), False), (ValueError(), False),
    ],
)  # fmt: skip
def test_only_what_may_pass_is_tried_again(error: openai.OpenAIError, again: bool) -> None:
    assert (wait_seconds(error, 1) is not None) == again
