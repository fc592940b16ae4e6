"""Specs decoded under their grammar, where the endpoint can: what is sent, and what of its answers is believed."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.config import Settings
from cutegen_lab.core.candidate import Proposal, TokenUsage
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.run import RunSettings
from cutegen_lab.providers.cutespec_replies import answer_grammar
from cutegen_lab.providers.openai.caps import Caps
from cutegen_lab.providers.openai.chat_completions import ChatCompletions
from cutegen_lab.providers.openai.offers import spec_as_text, spec_as_tool_input
from cutegen_lab.providers.openai.provider import OpenAIProvider
from cutegen_lab.providers.openai.token_count import estimated_tokens, most_tokens
from cutegen_lab.session.factories import make_provider
from tests.providers.requests import request
from tests.providers.server import PATHS, Script, serving
from tests.providers.test_cutespec_replies import SPEC, asked, problem
from tests.providers.test_manual_and_replay import ANSWER as MODULE_ANSWER
from tests.providers.test_manual_and_replay import quiet
from tests.providers.test_openai import provider

__all__ = ["problem"]  # the fixture
CHAT, RESPONSES = PATHS["chat"], PATHS["responses"]
ANSWER = f"Title: narrow\nReason: two at a time\nPredicted effect: 5% less time\n\n```cutespec\n{SPEC}```\n"
FIELDS = {"structured_outputs", "guided_grammar", "ebnf"}
UNKNOWN = {name: f"Unknown parameter: '{name}'." for name in FIELDS}


def proposed(asking: OpenAIProvider, wanted: GenerateRequest) -> Proposal:
    return asking.propose(wanted, quiet, threading.Event())


def test_vllm_and_sglang_get_the_grammar_with_chat_completions(problem: Problem) -> None:
    """Although they speak the Responses API too, where SGLang ignores grammars."""
    script = Script(ANSWER, apis=("chat", "responses"))
    with serving(script) as url:
        proposal = proposed(provider(url), asked(problem))
    assert proposal.spec == SPEC and not proposal.refused and proposal.title == "narrow"
    (sent,) = script.requests
    grammar = answer_grammar("gbnf")
    assert script.paths == [CHAT] and sent["structured_outputs"] == {"grammar": grammar}
    assert sent["guided_grammar"] == sent["ebnf"] == grammar and "tools" not in sent


def test_an_endpoint_with_custom_tools_gets_the_grammar_as_one(problem: Problem) -> None:
    said = "I call the tool with `answer`.\n```text\nnot it\n```\n"
    script = Script(said, apis=("responses",), tool_input=ANSWER, reasoned=20)
    with serving(script) as url:
        asking = provider(url)
        proposals = [proposed(asking, asked(problem)) for _ in range(2)]
    for proposal in proposals:
        assert (proposal.spec, proposal.title, proposal.predicted_effect) == (SPEC, "narrow", "5% less time")
        assert proposal.usage == TokenUsage(100, 50, reasoning=20)
    assert script.paths == [CHAT, RESPONSES, RESPONSES], "that there are no Chat Completions is remembered"
    (tool,) = script.requests[0]["tools"]
    assert tool["type"] == "custom"
    assert tool["format"] == {"type": "grammar", "syntax": "lark", "definition": answer_grammar("lark")}
    assert script.requests[0]["tool_choice"] == {"type": "custom", "name": tool["name"]}
    assert script.requests[0]["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: 'custom'. Supported values are: 'function', 'web_search', and 'mcp'.",
        "Tool 'answer' has an invalid grammar.",
        "tools is not supported with this model.",
    ],
)
def test_what_is_refused_is_left_out_and_this_is_remembered(problem: Problem, message: str) -> None:
    script = Script(ANSWER, apis=("chat", "responses"), refused={**UNKNOWN, "tools": message})
    with serving(script) as url:
        asking = provider(url)
        assert proposed(asking, asked(problem)).spec == proposed(asking, asked(problem)).spec == SPEC
    assert script.paths == [CHAT, RESPONSES, RESPONSES, RESPONSES]
    with_fields, with_tool, plain, again = script.requests
    assert set(with_fields) >= FIELDS and "tools" in with_tool
    assert not {*FIELDS, "tools", "tool_choice"} & {*plain, *again}


def test_a_server_of_chat_completions_that_refuses_the_grammar(problem: Problem) -> None:
    script = Script(ANSWER, refused={"structured_outputs": "Invalid grammar specification."})
    with serving(script) as url:
        asking = provider(url)
        assert proposed(asking, asked(problem)).spec == proposed(asking, asked(problem)).spec == SPEC
    assert script.paths == [CHAT, RESPONSES, CHAT, CHAT]
    assert not FIELDS & set(script.requests[-1])


def test_another_refusal_does_not_end_the_offer(problem: Problem) -> None:
    script = Script(ANSWER, statuses=[400], error="This model's maximum context length is 8192 tokens.")
    with serving(script) as url:
        asking = provider(url)
        with pytest.raises(ProviderError, match="answered 400"):
            proposed(asking, asked(problem))
        assert proposed(asking, asked(problem)).spec == SPEC
    assert set(script.requests[-1]) >= FIELDS


def test_an_endpoint_that_ignores_the_grammar_is_asked_again(problem: Problem) -> None:
    said: list[str] = []
    script = Script(f"{ANSWER}```cutespec\n{SPEC}# or\n```\n")
    with serving(script) as url, pytest.raises(ProviderError, match=r"2 different cutespec blocks.*, twice"):
        provider(url).propose(asked(problem), said.append, threading.Event())
    assert len(script.requests) == 2 and "asking again" in said[-1]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_what_was_decoded_is_checked_all_the_same(problem: Problem, api: Any) -> None:
    wrong = ANSWER.replace("silu", "sliu")
    script = Script(wrong, apis=(api,), tool_input=wrong)
    with serving(script) as url:
        (diagnostic,) = proposed(provider(url), asked(problem)).refused
    assert diagnostic.line == 4 and "no function 'sliu'" in diagnostic.message


@pytest.mark.parametrize(
    ("tool_input", "says"),
    [
        ("kernel gate\n", "it has no fenced code block, twice"),
        (ANSWER.replace("```\n", ""), "cut off, twice"),
        (ANSWER + ANSWER.replace("vec=2", "vec=4"), "2 different cutespec blocks"),
        ("x" * 500_000, "more than 400,000 characters"),
    ],
)
def test_a_tool_call_that_is_no_answer(problem: Problem, tool_input: str, says: str) -> None:
    with (
        serving(Script("text", apis=("responses",), tool_input=tool_input)) as url,
        pytest.raises(ProviderError, match=says),
    ):
        proposed(provider(url), asked(problem))


@pytest.mark.parametrize("delta", [7, ["Title"], {"text": "x"}])
def test_input_that_is_not_text(problem: Problem, delta: Any) -> None:
    events = [{"type": "response.custom_tool_call_input.delta", "delta": delta}]
    with (
        serving(Script(apis=("responses",), events=events)) as url,
        pytest.raises(ProviderError, match=r"the delta is .*, not text"),
    ):
        proposed(provider(url), asked(problem))


def test_a_call_that_is_sent_only_at_the_end(problem: Problem) -> None:
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": "Here it is."}]},
        {"type": "custom_tool_call", "call_id": "c", "name": "answer", "input": ANSWER},
    ]
    events = [{"type": "response.created"}, {"type": "response.completed", "response": {"output": output}}]
    with serving(Script(apis=("responses",), events=events)) as url:
        assert proposed(provider(url), asked(problem)).spec == SPEC


@pytest.mark.parametrize("settings", ["plain", "modules"])
def test_other_requests_have_only_a_prompt(problem: Problem, settings: str) -> None:
    script = Script(ANSWER if settings == "plain" else MODULE_ANSWER, apis=("chat", "responses"))
    with serving(script) as url:
        proposed(provider(url, plain=settings == "plain"), asked(problem) if settings == "plain" else request())
    assert script.paths == [RESPONSES]
    assert not {*FIELDS, "tools"} & set(script.requests[0])


def test_an_environment_variable_turns_them_off(problem: Problem, tmp_path: Path) -> None:
    script = Script(ANSWER, apis=("chat", "responses"))
    with serving(script) as url:
        environment = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "CUTEGEN_PLAIN_REQUESTS": "1"}
        chosen = RunSettings(provider="openai", model="m", language="spec")
        made = make_provider(chosen, Settings.from_environment(environment), tmp_path)
        assert made.propose(asked(problem), quiet, threading.Event()).spec == SPEC
    assert script.paths == [RESPONSES] and "tools" not in script.requests[0]


def test_openai_has_no_fields_of_other_servers() -> None:
    assert "spec" not in ChatCompletions(of_openai=True).offers


def test_a_cap_counts_what_is_offered(problem: Problem) -> None:
    script = Script(ANSWER, usage=None)
    with serving(script) as url:
        usage = proposed(provider(url, caps=Caps(max_tokens=60_000)), asked(problem)).usage
    (sent,) = script.requests
    prompt = sent["messages"][0]["content"]
    offered = max(len(json.dumps(each())) for each in (spec_as_text, spec_as_tool_input))
    assert sent["max_tokens"] == 60_000 - most_tokens(prompt, "m") - offered
    assert usage.prompt == estimated_tokens(len(prompt.encode()) + offered)


def test_a_spec_is_asked_for_under_the_grammar_again_after_an_unusable_answer(problem: Problem) -> None:
    script = Script("no spec")
    with serving(script) as url, pytest.raises(ProviderError, match="twice"):
        proposed(provider(url), replace(asked(problem), feedback="faster"))
    assert [set(each) >= FIELDS for each in script.requests] == [True, True]
