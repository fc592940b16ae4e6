"""A cancel ends a request within a second, whatever the server does, and the server notices it."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from cutegen_lab.core.errors import Cancelled, ProviderError
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, quiet
from tests.providers.test_openai import APIS, provider


def cancelled(url: str, **options: Any) -> tuple[float, Any]:
    """(Seconds from the cancel to the end, the provider)."""
    cancel, asked = threading.Event(), provider(url, **options)
    timer = threading.Timer(0.4, cancel.set)
    timer.start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        asked.propose(request(), quiet, cancel)
    return time.monotonic() - started - 0.4, asked


@APIS
@pytest.mark.parametrize("how", [{"stall_seconds": 0.5}, {"silent": True}, {"deaf": True}])
def test_cancel_ends_a_request(api: Any, how: dict[str, Any]) -> None:
    with serving(Script(ANSWER, apis=(api,), **how)) as url:
        assert cancelled(url)[0] < 1.0


@APIS
@pytest.mark.parametrize("how", [{"silent": True}, {"deaf": True}])
def test_a_silent_server_notices_the_cancel_and_can_stop(api: Any, how: dict[str, Any]) -> None:
    script = Script(ANSWER, apis=(api,), **how)
    with serving(script) as url:
        cancelled(url)
        assert script.left.wait(2), "the connection stays open, and the answer goes on being written"


def test_tokens_of_a_cancelled_answer_count_against_the_cap() -> None:
    with serving(Script(ANSWER, silent=True)) as url:
        asked = cancelled(url)[1]
    assert asked.spent.prompt > 3000 and asked.spent.completion > 0 and asked.spent.estimated == asked.spent.total


def test_cancel_while_it_waits_to_send_again() -> None:
    script = Script(ANSWER, statuses=[429] * 20, retry_after="30")
    with serving(script) as url:
        assert cancelled(url, max_retries=20)[0] < 1.0
        time.sleep(0.2)
        assert not [each for each in threading.enumerate() if each.name == "cutegen-model"]
    assert len(script.requests) == 1


def test_a_cancelled_request_is_not_sent_again() -> None:
    script = Script(ANSWER, statuses=[429] * 20, retry_after="1")
    with serving(script) as url:
        cancelled(url, max_retries=20)
        asked = len(script.requests)
        time.sleep(2)
    assert len(script.requests) == asked


def test_a_connection_that_is_only_kept_alive_is_given_up() -> None:
    script = Script(endless=b": a sign of life\n\n")
    slow = Slowly(script)
    with slow, serving(script) as url, pytest.raises(ProviderError, match=r"sent nothing of an answer for 1\.2 s"):
        provider(url, timeout_seconds=0.3).propose(request(), quiet, threading.Event())


class Slowly:
    """Ends ``endless`` after some seconds, so that the server's thread ends."""

    def __init__(self, script: Script) -> None:
        self._timer = threading.Timer(5, lambda: setattr(script, "endless", b""))

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
