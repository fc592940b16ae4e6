"""A person (or any program) in place of a model: requests and answers are numbered files in a folder."""

from __future__ import annotations

import re
from pathlib import Path

from cutegen_lab.core.errors import Cancelled, InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.providers.conversation import Answer, ConversationProvider, Wanted
from cutegen_lab.providers.openai.token_count import usage_by_length
from cutegen_lab.providers.prompting import RenderedPrompt

DEFAULT_DIR = Path(".cutegen/manual")
_POLL_SECONDS = 0.2
_REQUEST = re.compile(r"^(\d{4,})\.request\.md$")


class ManualProvider(ConversationProvider):
    """Writes ``NNNN.request.md`` into ``directory`` and waits for ``NNNN.answer.md``, which a person, a
    program or :meth:`submit` writes.

    The conversation is recorded as ``conversation.jsonl``, which ``replay:FILE`` plays; its tokens are estimated from
    the lengths of the texts. Raises InputError if the folder cannot be made.
    """

    name = "manual"

    def __init__(
        self, directory: Path | None = None, model: str = "a person", source: str = "", strategy: str = ""
    ) -> None:  # fmt: skip
        self.directory = directory or DEFAULT_DIR
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            told = f"cannot make the folder {self.directory}: {error.strerror}"
            raise InputError(told, Hint(Advice.MANUAL_FOLDER)) from None
        super().__init__(record=self.directory / "conversation.jsonl", source=source, strategy=strategy)
        self._model, self._before = model, ""

    def answer(self, prompt: RenderedPrompt, say: Say, cancel: Cancel, wanted: Wanted = "text") -> Answer:
        """Writes the request and waits for its answer without a time limit. Raises Cancelled once ``cancel`` is set."""
        number = 1 + max((n for n, _ in self._requests()), default=0)
        request = self.directory / f"{number:04}.request.md"
        part = request.with_suffix(".part")
        part.write_text(prompt.text, encoding="utf-8")
        part.replace(request)
        reply = self._reply(number)
        say(f"waiting for {reply} (the prompt is in {request.name})")
        size = -1
        while True:
            if cancel.wait(_POLL_SECONDS):
                raise Cancelled()
            if reply.is_file():
                # The answer is complete once its file no longer grows.
                if (now := reply.stat().st_size) == size and now > 0:
                    text = reply.read_text(encoding="utf-8", errors="replace")
                    usage = usage_by_length(prompt.text, text, self._before)
                    self._before = prompt.text
                    return Answer(text, self._model, usage)
                size = now

    def submit(self, text: str) -> None:
        """Answers the newest request without an answer. Raises InputError if there is no such request."""
        open_requests = [number for number, _ in self._requests() if not self._reply(number).exists()]
        if not open_requests:
            raise InputError("no request is waiting for an answer", Hint(Advice.START_MANUAL))
        reply = self._reply(max(open_requests))
        part = reply.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(reply)

    def _reply(self, number: int) -> Path:
        return self.directory / f"{number:04}.answer.md"

    def _requests(self) -> list[tuple[int, Path]]:
        found = ((_REQUEST.match(path.name), path) for path in self.directory.iterdir())
        return [(int(match[1]), path) for match, path in found if match]
