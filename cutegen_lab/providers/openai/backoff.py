"""When a request is sent again, and after how many seconds."""

from __future__ import annotations

import math
import random
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openai

MAX_WAIT_SECONDS = 120.0  # maximum wait that a server may ask for
_FIRST_SECONDS, _LAST_SECONDS = 0.5, 8.0
_JITTER = 0.25  # fraction; so that clients which were refused together do not return together
_UNSENT = ("ConnectError", "ConnectTimeout")  # of httpx: the server has not received the request
_EXHAUSTED = "insufficient_quota"  # OpenAI's code where only money helps


def wait_seconds(error: openai.OpenAIError, failures: int) -> float | None:
    """Seconds until the request is sent again, after it failed ``failures`` times in a row; None if it should not be:
    it would fail again, or the server may already be working on it."""
    if not _temporary(error):
        return None
    asked = asked_seconds(error)
    if asked > MAX_WAIT_SECONDS:
        return None
    doubled = min(_FIRST_SECONDS * 2.0 ** min(failures - 1, 10), _LAST_SECONDS)
    return max(asked, doubled) * (1 + _JITTER * random.random())  # noqa: S311 - no secret depends on it


def arrived(error: openai.OpenAIError) -> bool:
    """Whether the server may be working on the request although the answer is ``error``: a timeout, or a connection
    that broke."""
    import openai

    return isinstance(error, openai.APIConnectionError) and type(error.__cause__).__name__ not in _UNSENT


def asked_seconds(error: openai.OpenAIError) -> float:
    """Seconds that the server asked to wait (``Retry-After``, a number or a date); 0 if it did not."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        if (seconds := _seconds(headers.get(name, "")) * unit) > 0:
            return seconds
    return 0.0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def _temporary(error: openai.OpenAIError) -> bool:
    import openai

    match error:
        case openai.APIConnectionError():
            return not arrived(error)
        case openai.APIStatusError():
            said = error.response.headers.get("x-should-retry", "")
            if said in ("true", "false"):
                return said == "true"
            again = error.status_code in (408, 409, 429) or error.status_code >= 500
            return again and error.status_code != 501 and error.code != _EXHAUSTED
    return False
