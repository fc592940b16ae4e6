"""Servers that answer with anything at all: one plain error, bounded memory, and no credentials in any text."""

from __future__ import annotations

import gzip
import json
import resource
import threading
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.providers.openai import stream
from cutegen_lab.providers.openai.provider import OpenAIProvider
from cutegen_lab.session import Session
from tests.loop.scripted import PROBLEM, ScriptedCompiler, ScriptedDevice, ScriptedJudge
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, quiet

KEY = "sk-KEY-CANARY"
PASSWORD = "PW-CANARY+1"  # noqa: S105 - of nobody
BASIC = b64encode(f"user:{PASSWORD}".encode()).decode()


def chunk(content: Any, finish: Any = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}], **fields}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def ask(url: str, **options: Any) -> Any:
    provider = OpenAIProvider(model="m", api_key=KEY, base_url=url, max_retries=0, **options)
    return provider, provider.propose(request(), quiet, threading.Event())


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"choices": 5}, "choices is int 5, not a list"),
        ({"choices": "text"}, "choices is str 'text', not a list"),
        ({"choices": [None]}, "without a delta"),
        ({"choices": [7]}, "without a delta"),
        ({"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}, "without a delta"),
        ({"choices": [{"index": 0, "delta": [1]}]}, "could not be read|cannot be used|empty answer|ended before"),
        (chunk(["a", "list"]), "content is list"),
        (chunk(17), "content is int 17, not text"),
        (chunk("text", finish={"reason": "stop"}), "finish_reason is dict"),
        ([1, 2, 3], "choices is missing|could not be read"),
        ("text", "choices is missing|could not be read"),
        (None, "choices is missing|could not be read"),
        (chunk("half \ud800", "stop"), "half of a surrogate pair"),
        ({"error": {"message": "\x1b[31mno"}}, r"\\x1b\[31mno"),
        ({"error": [1]}, "An error occurred during streaming"),
    ],
)
def test_an_answer_of_another_shape_is_one_error(event: Any, says: str) -> None:
    with serving(Script(events=[event])) as url, pytest.raises(ProviderError, match=says) as raised:
        ask(url)
    assert "\n" not in str(raised.value) and str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"type": 5}, "no /responses"),  # not an event of Responses, so the other API is tried
        (event("output_text.delta", delta=["a", "list"]), "delta is list"),
        (event("output_text.delta", delta=17), "delta is int 17, not text"),
        (event("refusal.delta", delta={}), "delta is dict"),
        (event("reasoning_summary_text.delta", delta=1), "delta is int 1"),
        (event("completed"), "the response is NoneType None"),
        (event("completed", response=5), "the response is int 5"),
        (event("completed", response=[1]), "the response is list"),
        (event("completed", response={"output": "text", "usage": [1]}), "empty answer"),
        (event("completed", response={"output": [7, {"content": 5}, {"content": [None, {"type": "output_text"}]}]}),
         "empty answer"),
        (event("incomplete", response={"incomplete_details": {"reason": 7}}), "ended before"),
        (event("failed", response={"error": "text"}), "the response failed"),
        (event("something.new", delta={"x": 1}), "ended before"),
        (event("output_text.delta", delta="half \ud800"), "ended before"),
        ({"type": "error", "message": "\x1b[31mno"}, r"\\x1b\[31mno"),
    ],
)  # fmt: skip
def test_responses_of_another_shape_are_one_error(event: Any, says: str) -> None:
    script = Script(apis=("responses",), events=[event])
    with serving(script) as url, pytest.raises(ProviderError, match=says) as raised:
        ask(url)
    assert "\n" not in str(raised.value) and str(raised.value).isprintable()


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": "many", "completion_tokens": "7"}, {"prompt_tokens": -(10**9), "completion_tokens": -5},
        {"prompt_tokens": 10**12, "completion_tokens": 1}, {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": True, "completion_tokens": True}, [1, 2], 12, {},
    ],
)  # fmt: skip
def test_usage_that_cannot_be_true_is_not_believed(usage: Any) -> None:
    with serving(Script(events=[chunk(ANSWER, "stop"), {"choices": [], "usage": usage}])) as url:
        provider, proposal = ask(url)
    assert 1000 < proposal.usage.prompt < 100_000 and 0 < proposal.usage.completion < 200
    assert provider.spent == proposal.usage


def test_a_character_in_two_chunks_is_put_together() -> None:
    head, tail = ANSWER.split("shown")
    pieces = [head + "\ud83d", "\ude00" + tail]
    with serving(Script(events=[chunk(pieces[0]), chunk(pieces[1], "stop")])) as url:
        assert ask(url)[1].reason == "\U0001f600"


@pytest.mark.timeout(60)
def test_many_chunks_take_time_linear_in_their_number() -> None:
    events = [chunk("word ")] * 20_000
    started = time.process_time()
    with serving(Script(events=[chunk(ANSWER), *events, chunk("", "stop")])) as url:
        assert ask(url)[1].title == "by hand"
    assert time.process_time() - started < 15  # with all of them summed at each: minutes


@pytest.mark.parametrize(
    ("endless", "says"),
    [
        (b"data: " + json.dumps(chunk("word " * 1000)).encode() + b"\n\n", "more than 400,000 characters"),
        (
            b"data: " + json.dumps({"choices": [{"delta": {"reasoning": "hm " * 1000}}]}).encode() + b"\n\n",
            "than 8 MiB",
        ),
        (
            b"data: " + json.dumps(event("output_text.delta", delta="word " * 1000)).encode() + b"\n\n",
            "400,000 characters",
        ),
        (b": a sign of life\n\n" * 1000, "more than 8 MiB"),
        (b"x" * 4096, "more than 8 MiB"),
    ],
)
@pytest.mark.timeout(120)
def test_an_answer_without_end_is_given_up(endless: bytes, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stream.MOST_BYTES == 64 << 20
    monkeypatch.setattr(stream, "MOST_BYTES", 8 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script = Script(endless=endless, apis=("responses",) if b"response." in endless else ("chat",))
    with serving(script) as url, pytest.raises(ProviderError, match=says):
        ask(url)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 48 << 10  # KiB


@pytest.mark.parametrize(
    "small",
    [
        event("refusal.delta", delta="no"), event("reasoning_text.delta", delta="hm"),
        event("output_text.delta", delta=" "), event("in_progress"), chunk(None), chunk(" "),
    ],
)  # fmt: skip
def test_small_events_without_end_are_given_up(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_BYTES", 1 << 18)
    script = Script(endless=b"data: " + json.dumps(small).encode() + b"\n\n")
    script.apis = ("responses",) if "type" in small else ("chat",)
    with serving(script) as url, pytest.raises(ProviderError, match="more than 0 MiB"):
        ask(url)


def test_a_compressed_answer_is_not_unpacked() -> None:
    script = Script(raw=gzip.compress(b"x" * (1 << 20)), headers={"Content-Encoding": "gzip"})
    with serving(script) as url, pytest.raises(ProviderError, match=r"compressed \(gzip\)"):
        ask(url)


def with_password(url: str) -> str:
    return url.replace("http://", f"http://user:{PASSWORD}@")


def clean(text: str) -> bool:
    return not any(secret in text for secret in (KEY, PASSWORD, BASIC, BASIC.rstrip("=")))


@pytest.mark.parametrize(
    "script",
    [
        Script(statuses=[401], error="{key}"), Script(statuses=[404]), Script(statuses=[429]),
        Script(statuses=[400], error=f"you sent {{key}}: user:{PASSWORD}, {KEY}"), Script(raw=b"data: {not json\n\n"),
        Script(events=[{"choices": f"{KEY} {PASSWORD}"}]),
        Script(events=[{"error": {"message": f"for {KEY} {BASIC}"}}]),
        Script(events=[chunk("", f"{KEY}")]), Script(ANSWER, stall_seconds=2), Script(refusal=f"not for {KEY} {BASIC}"),
        Script(apis=("responses",), statuses=[500], error=f"{{key}} {PASSWORD}"),
        Script(apis=("responses",), events=[{"type": "error", "message": f"for {KEY} {PASSWORD}"}]),
        Script(apis=("responses",), events=[event("failed", response={"error": {"message": f"{KEY} {BASIC}"}})]),
    ],
)  # fmt: skip
def test_no_error_has_the_credentials(script: Script) -> None:
    with serving(script) as url, pytest.raises(ProviderError) as raised:
        ask(with_password(url), timeout_seconds=1)
    assert clean(str(raised.value)), raised.value


def test_nobody_listening_and_addresses_that_are_none() -> None:
    with serving(Script()) as url:
        pass
    for address in (with_password(url), f"http://user:{PASSWORD}@host:port/v1", f"user:{PASSWORD}@host/v1"):
        with pytest.raises(ProviderError) as raised:
            ask(address)
        assert clean(str(raised.value)), raised.value


@pytest.mark.parametrize("userinfo", [True, False])
def test_credentials_that_a_server_repeats_are_nowhere(tmp_path: Path, userinfo: bool) -> None:
    """In the answer's title, reason and code: masked in the events, the kernel's file and the record."""
    echo = f"{{key}} {PASSWORD if userinfo else ''} {KEY}"
    text = (
        f"Title: for {echo}\nReason: {echo}\nPredicted effect: {echo}\n\n```python\n# {echo}\ndef launch(x): ...\n```"
    )
    script = Script(text, apis=("responses",) if userinfo else ("chat",), reasoning=f"{echo} " * 50)
    record = tmp_path / "talk.jsonl"
    with serving(script) as url:
        provider = OpenAIProvider(
            model="m", api_key=KEY, base_url=with_password(url) if userinfo else url, record=record
        )
        with Session.open(
            tmp_path / "lab",
            compiler=ScriptedCompiler(),
            judge=ScriptedJudge(),  # type: ignore[arg-type]
            device=lambda kind: ScriptedDevice(),  # type: ignore[arg-type, return-value]
            workloads=lambda problem, device: problem.check_workloads,
        ) as session:
            run = session.run(PROBLEM, RunSettings(auto=True, budget=Budget(max_steps=1)), provider=provider)
            kernel = run.kernel_path("c1").read_text()
            seen = [str(run.history.events), run.view().model_dump_json(), kernel, str(run.log)]
    assert script.keys == [f"Basic {BASIC}" if userinfo else f"Bearer {KEY}"]  # so it was sent, and repeated
    stored = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert all(map(clean, [*seen, *stored]))
    assert "***" in kernel


def test_usage_as_reported_is_believed_where_it_can_be() -> None:
    with serving(Script(ANSWER, usage=(2000, 50))) as url:
        assert ask(url)[1].usage == TokenUsage(2000, 50)
