"""Any OpenAI-compatible endpoint, streamed, with hard limits on tokens, dollars and size.

The key, and a user and password in the URL, are masked in every text, also in what the server sends.
"""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path
from typing import Any

from cutegen_lab.config import DEFAULT_MODEL
from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.errors import Cancelled, ProviderError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.core.secrets import Secrets
from cutegen_lab.providers.conversation import Answer, ConversationProvider, Wanted
from cutegen_lab.providers.openai.call import Call
from cutegen_lab.providers.openai.caps import Caps
from cutegen_lab.providers.openai.endpoint import Endpoint
from cutegen_lab.providers.openai.failures import explained
from cutegen_lab.providers.openai.reception import Reception
from cutegen_lab.providers.openai.stream import Piece, Unreadable
from cutegen_lab.providers.openai.token_count import most_tokens
from cutegen_lab.providers.prompting import RenderedPrompt

_POLL_SECONDS = 0.1
_SILENT_TIMEOUTS = 4  # timeouts without an event, after which a connection that is only kept alive is given up
_END, _NOTHING = object(), Piece()


class OpenAIProvider(ConversationProvider):
    """A model through the ``openai`` package: the Responses API or, where the endpoint does not have it, Chat
    Completions.

    ``caps`` limits the tokens and the cost of all answers. ``timeout_seconds``: maximum silence of the server.
    ``plain``: requests have no grammars and tools. Raises ProviderError without a key (a custom ``base_url`` may need
    none).
    """

    name = "openai"

    def __init__(
        self, model: str | None = None, api_key: str | None = None, base_url: str | None = None,
        caps: Caps | None = None, timeout_seconds: float = 300.0, max_retries: int = 3, record: Path | None = None,
        plain: bool = False,
    ) -> None:  # fmt: skip
        self.model = model or DEFAULT_MODEL
        super().__init__(record, f"{self.model} through the openai provider")
        if not api_key and not base_url:
            raise ProviderError("no API key is set", Hint(Advice.SET_KEY))
        self._secrets = Secrets(api_key or "", base_url or "")
        self._endpoint = Endpoint(self.model, api_key or "", base_url or "", timeout_seconds, max_retries)
        self._caps, self._plain, self.spent = caps or Caps(), plain, TokenUsage()

    def __repr__(self) -> str:
        return f"OpenAIProvider(model={self.model!r})"

    def answer(self, prompt: RenderedPrompt, say: Say, cancel: Cancel, wanted: Wanted = "text") -> Answer:
        """The model's answer. Raises ProviderError (key, model, network, a cap, an answer that is empty, cut off,
        filtered or refused), or Cancelled within ``_POLL_SECONDS`` of ``cancel``."""
        wanted = "text" if self._plain else wanted
        call = Call(prompt.text, say, wanted, self._endpoint.offered_bytes(wanted))
        received: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._send, args=(call, received), name="cutegen-model", daemon=True).start()
        reception = Reception(self.model, call, self._secrets)
        try:
            text = self._collect(received, reception, say, cancel)
        except ProviderError as error:
            raise error.after(reception.usage) from None
        finally:
            call.end()
            self.spent += reception.usage
            self.streamed = 0
        return Answer(text, self.model, reception.usage)

    def _send(self, call: Call, received: queue.SimpleQueue[Any]) -> None:
        """Puts the pieces of the answer, then ``_END`` or an exception, into ``received``. Runs in its own thread, so
        that a silent server cannot delay a cancel."""
        try:
            prompt_tokens = most_tokens(call.prompt, self.model) + call.offered_bytes
            call.most_tokens = self._caps.answer_tokens(self.spent, prompt_tokens)
            for piece in self._endpoint.pieces(call):
                if call.ended.is_set():
                    return
                received.put(piece)
            received.put(_END)
        except Exception as error:  # the thread that reads ``received`` explains and raises it
            received.put(error)

    def _collect(self, received: queue.SimpleQueue[Any], reception: Reception, say: Say, cancel: Cancel) -> str:
        silence = _SILENT_TIMEOUTS * self._endpoint.timeout_seconds
        heard = time.monotonic()
        while True:
            if cancel.is_set():
                raise Cancelled()
            if time.monotonic() - heard > silence:
                raise ProviderError(f"{self._endpoint.where} sent nothing of an answer for {silence:g} s", "Retry.")
            try:
                item = received.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if item is _END:
                return self._text(reception)
            if isinstance(item, Exception):
                raise explained(item, self._endpoint, self._secrets)
            if item != _NOTHING:
                heard = time.monotonic()
            reception.add(item)
            self.streamed = reception.tokens
            if line := reception.told():
                say(line)

    def _text(self, reception: Reception) -> str:
        try:
            return reception.text()
        except Unreadable as error:
            raise explained(error, self._endpoint, self._secrets) from None
