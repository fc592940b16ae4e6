"""Common part of all model providers: renders the prompt, gets and parses an answer, asks once more if necessary, keeps
a record."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from cutegen_lab.core.candidate import Proposal, TokenUsage
from cutegen_lab.core.errors import ProviderError, ProviderExhausted
from cutegen_lab.core.protocols import Cancel, GenerateRequest, Say
from cutegen_lab.providers.cutespec_replies import written_out
from cutegen_lab.providers.prompting import RenderedPrompt, render, render_reask
from cutegen_lab.providers.replies import MalformedAnswer, done, parse

CONVERSATION_SCHEMA = "cutegen-conversation"
CONVERSATION_VERSION = 1
MAX_REASKS = 1
Wanted = Literal["text", "spec", "edits"]
"""Form of an answer: "spec" if it must have a spec, which some endpoints can decode under its grammar; "edits" if it
may have edits of a module, for which some have a tool."""


@dataclass(frozen=True)
class Answer:
    """A model's answer."""

    text: str
    """The text."""
    model: str
    """Model that gave it."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    """Tokens of the prompt and the answer."""


def _shown_text(request: GenerateRequest) -> str:
    """The module that the prompt shows and edits may change; "" where it shows none, or a spec."""
    parent = request.parent.candidate.proposal if request.parent else None
    return "" if parent is None or (request.language == "spec" and parent.spec) else parent.source


class ConversationProvider(ABC):
    """A provider that asks a model. Subclasses implement :meth:`answer`.

    ``record`` is the file of all exchanges, which ``replay:FILE`` plays; ``source`` is its note of who answered
    (default: the provider's name), ``strategy`` the run's, on which it depends what the model is asked.
    """

    name: str
    streamed = 0
    """Estimated number of tokens received of the current answer; 0 between answers."""

    def __init__(self, record: Path | None = None, source: str = "", strategy: str = "") -> None:
        self._record, self._source, self._strategy = record, source, strategy

    @abstractmethod
    def answer(self, prompt: RenderedPrompt, say: Say, cancel: Cancel, wanted: Wanted = "text") -> Answer:
        """The model's answer to a prompt. Raises ProviderError, ProviderExhausted or Cancelled."""

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        """A parsed proposal. After an unusable answer the model is asked once more; a second one raises
        ProviderError. Raises ProviderExhausted if the model answers that it is done."""
        prompts = [render(request)]
        before = _shown_text(request)
        wanted: Wanted = "spec" if request.language == "spec" else "edits" if before else "text"
        spent = TokenUsage()
        while True:
            try:
                answer = self.answer(prompts[-1], say, cancel, wanted)
            except ProviderError as error:
                raise error.after(spent)  # noqa: B904 - the same error
            self._keep(prompts[-1], answer)
            spent += answer.usage
            if request.may_end and (why := done(answer.text)):
                raise ProviderExhausted(f"{answer.model or self.name} is done: {why}").after(spent)
            try:
                parsed = parse(answer.text, specs=request.language == "spec", before=before)
            except MalformedAnswer as error:
                if len(prompts) > MAX_REASKS:
                    twice = ProviderError(f"{self.name}: {error.message}, twice", "Retry, or try another model.")
                    raise twice.after(spent) from None
                say(f"{error.message}; asking again")
                prompts.append(render_reask(prompts[0], f"{error.message[0].upper()}{error.message[1:]}."))
                continue
            proposal = Proposal(
                source=parsed.source, title=parsed.title, reason=parsed.reason,
                predicted_effect=parsed.predicted_effect, prompts=tuple(p.ref for p in prompts), usage=spent,
                model=answer.model, expects=parsed.expects, ideas=parsed.ideas,
                implements=parsed.implements if parsed.implements in request.known_ideas else "",
            )  # fmt: skip
            return written_out(proposal, request) if parsed.is_spec else proposal

    def _keep(self, prompt: RenderedPrompt, answer: Answer) -> None:
        if self._record is None:
            return
        line = {
            "prompt": asdict(prompt.ref),
            "answer": answer.text,
            "model": answer.model,
            "usage": asdict(answer.usage),
        }
        new = not self._record.exists()
        with self._record.open("a", encoding="utf-8") as file:
            if new:
                source = self._source or self.name
                head = {"schema": CONVERSATION_SCHEMA, "schema_version": CONVERSATION_VERSION, "source": source}
                head |= {"strategy": self._strategy} if self._strategy else {}
                file.write(json.dumps(head) + "\n")
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
