"""Any OpenAI-compatible endpoint, streamed, with hard limits on tokens and size.

The key, and a user and password in the URL, are masked in every text, also in what the server sends.
"""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.errors import Cancelled, ProviderError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.core.secrets import Secrets, without_credentials
from cutegen_lab.providers.conversation import Answer, ConversationProvider
from cutegen_lab.providers.prompting import RenderedPrompt
from cutegen_lab.providers.replies import MAX_ANSWER_CHARS
from cutegen_lab.providers.stream import Unreadable, bounded, joined, piece

if TYPE_CHECKING:
    import openai

DEFAULT_MODEL = "gpt-5"
_CHARS_PER_TOKEN = 4  # an estimate, used until the server reports its usage
_POLL_SECONDS = 0.1
_END = object()


class OpenAIProvider(ConversationProvider):
    """Chat completions through the ``openai`` package.

    ``max_tokens`` limits prompt plus completion tokens over all requests. Raises ProviderError without a key (a
    custom ``base_url`` may need none).
    """

    name = "openai"

    def __init__(
        self, model: str | None = None, api_key: str | None = None, base_url: str | None = None,
        max_tokens: int | None = None, timeout_seconds: float = 120.0, max_retries: int = 3,
        record: Path | None = None,
    ) -> None:  # fmt: skip
        super().__init__(record, f"{model or DEFAULT_MODEL} through the openai provider")
        if not api_key and not base_url:
            raise ProviderError("no API key is set", Hint(Advice.SET_KEY))
        self._key = api_key or "none"
        self._secrets = Secrets(api_key or "", base_url or "")
        self._base_url, self._timeout, self._retries = base_url, timeout_seconds, max_retries
        self.model = model or DEFAULT_MODEL
        self._cap, self.spent = max_tokens, TokenUsage()

    def __repr__(self) -> str:
        return f"OpenAIProvider(model={self.model!r})"

    def answer(self, prompt: RenderedPrompt, say: Say, cancel: Cancel) -> Answer:
        """The model's answer. Raises ProviderError (key, model, network, token limit, empty answer), or Cancelled
        within ``_POLL_SECONDS`` of ``cancel``."""
        self._guard(len(prompt.text) // _CHARS_PER_TOKEN, 0)
        pieces: queue.SimpleQueue[Any] = queue.SimpleQueue()
        clients: queue.SimpleQueue[openai.OpenAI] = queue.SimpleQueue()
        stop = threading.Event()
        thread = threading.Thread(target=self._stream, args=(prompt.text, pieces, stop, clients), daemon=True)
        thread.start()
        try:
            return self._collect(prompt, pieces, say, cancel)
        finally:
            stop.set()
            self.streamed = 0
            if not clients.empty():
                clients.get().close()  # a client that waits to retry would send, and pay for, the request again

    def _collect(self, prompt: RenderedPrompt, pieces: queue.SimpleQueue[Any], say: Say, cancel: Cancel) -> Answer:
        text: list[str] = []
        usage: TokenUsage | None = None
        finish = ""
        size = told = 0
        asked = len(prompt.text) // _CHARS_PER_TOKEN
        while True:
            if cancel.is_set():
                raise Cancelled()
            try:
                item = pieces.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if item is _END:
                break
            if isinstance(item, Exception):
                raise self._explained(item).after(_estimated(asked, size)) from None
            usage, finish = item.usage or usage, item.finish or finish
            text.append(item.text)
            size += len(item.text)
            if size > MAX_ANSWER_CHARS:
                raise ProviderError(
                    f"the answer of {self.model} has more than {MAX_ANSWER_CHARS:,} characters",
                    "Retry, or try another model.",
                ).after(_estimated(asked, size))
            self.streamed = so_far = size // _CHARS_PER_TOKEN
            self._guard(asked, so_far)
            if so_far - told >= 100:
                told = so_far
                say(f"{self.model}: about {so_far:,} tokens…")
        usage = usage or TokenUsage(asked, size // _CHARS_PER_TOKEN)
        self.spent += usage
        if not finish:
            raise ProviderError(f"the stream from {self.model} ended before the answer did", "Retry.").after(usage)
        try:
            answer = self._secrets.masked(joined(text))
        except Unreadable as error:
            raise self._explained(error).after(usage) from None
        if not answer.strip():
            reason = self._secrets.masked(finish[:40])
            empty = ProviderError(f"{self.model} gave an empty answer (finish reason {reason!r})", "Retry.")
            raise empty.after(usage)
        return Answer(answer, self.model, usage)

    def _stream(
        self, prompt: str, pieces: queue.SimpleQueue[Any], stop: threading.Event,
        clients: queue.SimpleQueue[openai.OpenAI],
    ) -> None:  # fmt: skip
        """Puts the pieces of the answer, then ``_END`` or an exception, into ``pieces``. Runs in its own thread, so
        that a silent server cannot delay a cancel."""
        try:
            with self._client() as client:
                clients.put(client)
                stream = client.chat.completions.create(
                    model=self.model, messages=[{"role": "user", "content": prompt}], stream=True,
                    stream_options={"include_usage": True},
                )  # fmt: skip
                with stream:
                    for chunk in stream:
                        if stop.is_set():
                            return
                        pieces.put(piece(chunk))
            pieces.put(_END)
        except Exception as error:  # the thread that reads ``pieces`` explains and raises it
            pieces.put(error)

    def _client(self) -> openai.OpenAI:
        import openai

        return openai.OpenAI(
            api_key=self._key, base_url=self._base_url, timeout=self._timeout, max_retries=self._retries,
            http_client=openai.DefaultHttpxClient(event_hooks={"response": [bounded]}),
            default_headers={"Accept-Encoding": "identity"},
        )  # fmt: skip

    def _guard(self, asked: int, answered: int) -> None:
        if self._cap is not None and self.spent.total + asked + answered > self._cap:
            message = f"the token cap of {self._cap:,} is reached ({self.spent.total:,} spent)"
            raise ProviderError(message, Hint(Advice.MORE_TOKENS)).after(_estimated(asked, answered * _CHARS_PER_TOKEN))

    def _explained(self, error: Exception) -> ProviderError:
        """The error as a ProviderError with one line, without credentials."""
        import openai

        where = without_credentials(self._base_url) if self._base_url else "the OpenAI API"
        detail = (self._secrets.masked(str(error)).splitlines() or [""])[0][:300]
        match error:
            case openai.AuthenticationError():
                return ProviderError(f"{where} refused the API key", "Check OPENAI_API_KEY.")
            case openai.NotFoundError():
                return ProviderError(f"{where} has no model {self.model!r}", Hint(Advice.OTHER_MODEL))
            case openai.RateLimitError():
                return ProviderError(
                    f"{where} still limits the rate after {self._retries} retries", "Wait, then retry."
                )
            case openai.APITimeoutError():
                return ProviderError(f"{where} did not answer within {self._timeout:g} s", "Retry.")
            case openai.APIStatusError():
                return ProviderError(f"{where} answered {error.status_code}: {detail}", "Retry, or check the options.")
            case openai.APIConnectionError():
                return ProviderError(f"cannot reach {where}", "Check OPENAI_BASE_URL and the network.")
            case Unreadable():
                return ProviderError(f"the answer of {where} cannot be used: {detail}", "Retry, or try another server.")
        return ProviderError(f"the answer of {where} could not be read: {type(error).__name__}: {detail}", "Retry.")


def _estimated(asked: int, size: int) -> TokenUsage:
    """Estimated tokens of a request whose answer broke off after ``size`` characters; none if the answer had not
    begun."""
    return TokenUsage(asked, size // _CHARS_PER_TOKEN) if size else TokenUsage()
