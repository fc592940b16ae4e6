"""Streams as these servers send them, event by event: text, reasoning, usage."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.core.candidate import Proposal, TokenUsage
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, MODULE
from tests.providers.test_openai import provider

HEAD, TAIL = ANSWER[:30], ANSWER[30:]
THOUGHT = "A warp reads 512 bytes.\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **fields}


def usage(**details: Any) -> dict[str, Any]:
    return {"prompt_tokens": 3100, "completion_tokens": 90, "total_tokens": 3190, **details}


def only_usage(**details: Any) -> dict[str, Any]:
    return {**chunk({}), "choices": [], "usage": usage(**details)}


def response(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "sequence_number": 1, **fields}


OPENAI_RESPONSES = [
    response("created", response={"id": "r", "status": "in_progress", "output": []}),
    response("in_progress", response={"id": "r", "status": "in_progress", "output": []}),
    response("output_item.added", output_index=0, item={"id": "rs", "type": "reasoning", "summary": []}),
    response("reasoning_summary_part.added", part={"type": "summary_text", "text": ""}),
    response("reasoning_summary_text.delta", delta="A warp reads 512"),
    response("reasoning_summary_text.delta", delta=" bytes."),
    response("reasoning_summary_text.done", text="A warp reads 512 bytes."),
    response("output_item.added", output_index=1, item={"id": "msg", "type": "message", "content": []}),
    response("content_part.added", part={"type": "output_text", "text": "", "annotations": []}),
    response("output_text.delta", delta=HEAD, logprobs=[]),
    response("output_text.delta", delta=TAIL, logprobs=[]),
    response("output_text.done", text=ANSWER),
    response("completed", response={
        "id": "r", "status": "completed", "error": None, "incomplete_details": None,
        "output": [{"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}],
        "usage": {"input_tokens": 3100, "input_tokens_details": {"cached_tokens": 2048}, "output_tokens": 90,
                  "output_tokens_details": {"reasoning_tokens": 40}, "total_tokens": 3190},
    }),
]  # fmt: skip
OPENAI_CHAT = [
    chunk({"role": "assistant", "content": "", "refusal": None}, usage=None, obfuscation="x"),
    chunk({"content": HEAD}, usage=None), chunk({"content": TAIL}, usage=None), chunk({}, "stop", usage=None),
    only_usage(prompt_tokens_details={"cached_tokens": 2048, "audio_tokens": 0},
               completion_tokens_details={"reasoning_tokens": 40, "audio_tokens": 0}),
]  # fmt: skip
VLLM = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning": THOUGHT, "reasoning_content": THOUGHT}), chunk({"content": HEAD}),
    chunk({"content": TAIL}, "stop", stop_reason=None), only_usage(),
]  # fmt: skip
SGLANG = [
    chunk({"role": "assistant", "content": "", "reasoning_content": None}, usage=None),
    chunk({"content": None, "reasoning_content": THOUGHT}, usage=usage(completion_tokens=12)),
    chunk({"content": HEAD, "reasoning_content": None}, usage=usage(completion_tokens=40)),
    chunk({"content": TAIL, "reasoning_content": None}, usage=usage(completion_tokens=80)),
    chunk({"content": None}, "stop", matched_stop=1), only_usage(prompt_tokens_details=None, reasoning_tokens=0),
]  # fmt: skip
LITELLM = [
    chunk({"role": "assistant", "content": "", "reasoning_content": THOUGHT}),
    chunk({"content": HEAD}), chunk({"content": TAIL}), chunk({}, "stop"),
    chunk({}, usage=usage(prompt_tokens_details={"cached_tokens": 2048}, cache_read_input_tokens=2048)),
]  # fmt: skip
OLLAMA = [
    chunk({"role": "assistant", "content": "", "reasoning": THOUGHT}), chunk({"role": "assistant", "content": HEAD}),
    chunk({"role": "assistant", "content": TAIL}), chunk({"role": "assistant", "content": ""}, "stop"), only_usage(),
]  # fmt: skip
OLD_OLLAMA = [
    chunk({"content": f"<think>\n{THOUGHT}</th"}), chunk({"content": f"ink>\n\n{HEAD}"}), chunk({"content": TAIL}),
    chunk({"content": ""}, "stop"),
]  # fmt: skip
DEEPSEEK_TEMPLATE = [chunk({"content": f"{THOUGHT}</think>\n{HEAD}"}), chunk({"content": TAIL}, "stop", usage=usage())]
VLLM_RESPONSES = [
    response("created", response={"id": "r"}), response("reasoning_text.delta", delta=THOUGHT),
    response("output_text.delta", delta=ANSWER),
    response("completed", response={"usage": {"input_tokens": 3100, "output_tokens": 90}}),
]  # fmt: skip
ALL_AT_THE_END = [response("created", response={"id": "r"}), OPENAI_RESPONSES[-1]]

PLAIN, CACHED = TokenUsage(3100, 90), TokenUsage(3100, 90, cached=2048)
DETAILED = TokenUsage(3100, 90, cached=2048, reasoning=40)


def answered(events: list[Any], record: Path | None = None) -> tuple[Proposal, list[str]]:
    """The proposal, and what was said."""
    said: list[str] = []
    script = Script(apis=("responses" if "type" in events[0] else "chat",), events=events)
    with serving(script) as url:
        return provider(url, record=record).propose(request(), said.append, threading.Event()), said


@pytest.mark.parametrize(
    ("events", "thought", "spent"),
    [
        pytest.param(OPENAI_RESPONSES, True, DETAILED, id="OpenAI Responses"),
        pytest.param(OPENAI_CHAT, False, DETAILED, id="OpenAI chat"),
        pytest.param(VLLM, True, PLAIN, id="vLLM"),
        pytest.param(VLLM_RESPONSES, True, PLAIN, id="vLLM Responses"),
        pytest.param(SGLANG, True, PLAIN, id="SGLang"),
        pytest.param(LITELLM, True, CACHED, id="LiteLLM"),
        pytest.param(OLLAMA, True, PLAIN, id="Ollama"),
        pytest.param(OLD_OLLAMA, True, None, id="Ollama without usage, reasoning in the text"),
        pytest.param(DEEPSEEK_TEMPLATE, False, PLAIN, id="reasoning begun by the prompt"),
        pytest.param(ALL_AT_THE_END, False, DETAILED, id="all at the end"),
    ],
)
def test_a_dialect(events: list[Any], thought: bool, spent: TokenUsage | None, tmp_path: Path) -> None:
    proposal, said = answered(events, tmp_path / "record")
    assert "warp" not in (tmp_path / "record").read_text(), "reasoning is no part of the answer"
    assert (proposal.source, proposal.title) == (MODULE, "by hand")
    assert [line for line in said if "thinks" in line] == (["m thinks: A warp reads 512 bytes."] if thought else [])
    if spent is None:
        assert proposal.usage.estimated == proposal.usage.total > 3000
    else:
        assert proposal.usage == spent


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 4000}}, PLAIN),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, PLAIN),
        ({"prompt_tokens_details": {"cached_tokens": "all"}}, PLAIN),
        ({"prompt_tokens_details": 7, "completion_tokens_details": [1]}, PLAIN),
        ({"completion_tokens_details": {"reasoning_tokens": 91}}, PLAIN),
        ({"completion_tokens_details": {"reasoning_tokens": 10**12}}, PLAIN),
    ],
)
def test_details_that_cannot_be_true_are_not_believed(details: dict[str, Any], expected: TokenUsage) -> None:
    assert answered([*OPENAI_CHAT[:-1], only_usage(**details)])[0].usage == expected
