"""Reasoning is told as progress and is no part of the answer."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_lab.providers.openai.thinking import ReasoningProgress, ThinkTags, without_reasoning
from tests.providers.requests import request
from tests.providers.server import Script, serving
from tests.providers.test_manual_and_replay import ANSWER, MODULE
from tests.providers.test_openai import APIS, KEY, provider


def split(*pieces: str) -> tuple[str, str]:
    """(Answer, reasoning) of an answer in pieces."""
    tags = ThinkTags()
    parts = [tags.add(piece) for piece in pieces]
    return "".join(answer for answer, _ in parts) + tags.rest(), "".join(reasoning for _, reasoning in parts)


@given(st.lists(st.integers(0, 60), max_size=8))
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>one < two</think>the answer", ("the answer", "one < two")),
        ("\n <think></think> the answer", (" the answer", "")),
        ("<thin ice", ("<thin ice", "")),
        ("x <think>y</think>", ("x <think>y</think>", "")),
        ("<think>never closed </thin", ("", "never closed ")),
    ],
)
def test_tags_are_found_wherever_the_pieces_are_cut(text: str, expected: tuple[str, str], cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert split(*(text[a:b] for a, b in pairwise(places))) == expected


def test_a_closing_tag_alone_ends_the_reasoning() -> None:
    assert without_reasoning("of the prompt</think>\nanswer") == "\nanswer"
    assert without_reasoning("answer") == "answer"


@APIS
def test_reasoning_is_told_while_it_streams(api: Any) -> None:
    said: list[str] = []
    thoughts = "".join(f"Step {number} is to load a tile of A.\n" for number in range(50))
    with serving(Script(ANSWER, apis=(api,), reasoning=thoughts)) as url:
        proposal = provider(url).propose(request(), said.append, threading.Event())
    told = [line for line in said if line.startswith("m thinks: Step ")]
    assert 3 <= len(told) <= 8 and told[-1] == "m thinks: Step 49 is to load a tile of A."
    assert all(line.endswith(" is to load a tile of A.") for line in told), "whole lines"
    assert proposal.source == MODULE and "Step" not in proposal.reason


def test_what_is_told_has_no_key_and_no_control_characters() -> None:
    said: list[str] = []
    with serving(Script(ANSWER, reasoning=f"{KEY} \x1b[31m " * 100)) as url:
        provider(url).propose(request(), said.append, threading.Event())
    told = [line for line in said if "thinks" in line]
    assert told and not any(KEY in line or "\x1b" in line for line in told) and "***" in told[0]


def test_a_key_between_two_pieces_is_masked() -> None:
    said: list[str] = []
    progress = ReasoningProgress("m", said.append, lambda text: text.replace(KEY, "***"))
    for piece in ("word " * 100 + KEY[:4], KEY[4:] + " word " * 100):
        progress.add(piece)
    progress.end()
    assert said and not any(part in line for line in said for part in (KEY[:4], KEY[4:]))
