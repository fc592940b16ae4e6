"""Plays a recorded conversation: the same answers in the same order, for tests, tutorials and shared runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cutegen_lab.core.candidate import Proposal, TokenUsage
from cutegen_lab.core.errors import InputError, ProviderError, ProviderExhausted
from cutegen_lab.core.protocols import Cancel, GenerateRequest, Say
from cutegen_lab.core.run import Strategy
from cutegen_lab.providers.conversation import (
    CONVERSATION_SCHEMA,
    CONVERSATION_VERSION,
    Answer,
    ConversationProvider,
    Wanted,
)
from cutegen_lab.providers.prompting import RenderedPrompt


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Prompt(_Record):
    id: str
    version: str
    sha256: str


class _Usage(_Record):
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated: int = 0


class Exchange(_Record):
    """One request (its prompt's id, version and hash) and its answer."""

    prompt: _Prompt
    answer: str
    model: str
    usage: _Usage = _Usage()


class _Head(_Record):
    # no field "schema", which would shadow a method of BaseModel: ``load`` checks that key first
    schema_version: int
    source: str
    strategy: Strategy | Literal[""] = ""


class ReplayProvider(ConversationProvider):
    """Answers from the file ``path``, in order. ``source`` says who gave the recorded answers, ``strategy`` by which
    strategy they were asked for ("" if that is not recorded).

    Raises InputError for a missing file or one that is not a conversation; ProviderExhausted after the last answer;
    ProviderError if the run's request has another prompt id than the recorded one.
    """

    name = "replay"

    def __init__(self, path: Path) -> None:
        super().__init__()
        head, self._exchanges = _loaded(path)
        self.source, self.strategy = head.source, head.strategy
        self._next = 0

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        # A resumed run has a new provider: the answers for its earlier candidates have already been played.
        mine = (a.candidate.proposal for a in request.history if a.candidate.provider == self.name)
        self._next = max(self._next, sum(len(proposal.prompts) for proposal in mine))
        return super().propose(request, say, cancel)

    def answer(self, prompt: RenderedPrompt, say: Say, cancel: Cancel, wanted: Wanted = "text") -> Answer:
        if self._next >= len(self._exchanges):
            raise ProviderExhausted(f"the recorded conversation ends after {len(self._exchanges)} answers")
        exchange = self._exchanges[self._next]
        if exchange.prompt.id != prompt.ref.id:
            message = f"answer {self._next + 1} was recorded for a {exchange.prompt.id!r} prompt, not {prompt.ref.id!r}"
            raise ProviderError(message, "The run went differently from the recording; use a live provider.")
        if exchange.prompt.sha256 != prompt.ref.sha256:
            say(f"answer {self._next + 1} was recorded for a prompt that read differently")
        self._next += 1
        return Answer(exchange.answer, f"{exchange.model} (replayed)", TokenUsage(**exchange.usage.model_dump()))


def load(path: Path) -> tuple[str, list[Exchange]]:
    """(Who gave the answers, the exchanges) of a conversation file. Raises InputError with the invalid line."""
    head, exchanges = _loaded(path)
    return head.source, exchanges


def _loaded(path: Path) -> tuple[_Head, list[Exchange]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the conversation {path}: {error}", "Check the path.") from None
    try:
        head = json.loads(lines[0]) if lines else {}
        known = isinstance(head, dict) and head.pop("schema", "") == CONVERSATION_SCHEMA
        if not known or _Head(**head).schema_version != CONVERSATION_VERSION:
            raise InputError(f"{path} is not a conversation file that this version can read", "Record it again.")
        exchanges = []
        for number, line in enumerate(lines[1:], 2):
            try:
                exchanges.append(Exchange.model_validate_json(line))
            except ValidationError as error:
                detail = error.errors()[0]["msg"]
                raise InputError(f"{path} line {number} is not an exchange: {detail}", "Record it again.") from None
    except (json.JSONDecodeError, ValidationError):
        raise InputError(f"{path} is not a conversation file", "Record it again.") from None
    return _Head(**head), exchanges
