"""An OpenAI-compatible endpoint: which of two APIs it speaks, which options it takes, when it is asked again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from cutegen_lab.core.secrets import without_credentials
from cutegen_lab.providers.conversation import Wanted
from cutegen_lab.providers.openai.backoff import arrived, wait_seconds
from cutegen_lab.providers.openai.call import Call
from cutegen_lab.providers.openai.chat_completions import ChatCompletions
from cutegen_lab.providers.openai.offers import Offers, Options
from cutegen_lab.providers.openai.responses_api import ResponsesAPI
from cutegen_lab.providers.openai.stream import Piece, bounded

if TYPE_CHECKING:
    import openai

_ANSWERED: dict[str, str] = {}  # base URL -> name of the API that answered last
_CONNECT_SECONDS = 10.0
_NO_SUCH_PATH = (404, 405, 501)
_NO_SUCH_MODEL = "model_not_found"
_LARGEST_LIMIT, _SMALLEST_LIMIT = 128_000, 1024  # tokens; many servers refuse more than their model can write
_ABOUT_THE_LIMIT = ("max_tokens", "max_completion_tokens", "max_output_tokens", "context length", "context window")


_NOTHING = object()


class Api(Protocol):
    """How one API is spoken."""

    name: str
    offers: Offers
    """What may be sent besides the prompt."""

    def opened(
        self, client: openai.OpenAI, model: str, prompt: str, most_tokens: int | None, offered: Options
    ) -> Iterable[Any]:
        """The stream of an answer of at most ``most_tokens`` tokens. ``offered``: further options. Raises the errors of
        ``openai``."""
        ...

    def adapt(self, refusal: str) -> bool:
        """Changes the option that the server's message ``refusal`` names; False if there is none."""
        ...

    def speaks(self, event: Any) -> bool:
        """Whether ``event`` may be the first of an answer; an empty stream has an ``object()``."""
        ...

    def piece(self, event: Any) -> Piece:
        """The fields used of ``event``. Raises Unreadable, ServerFailure."""
        ...


class _NotSpoken(Exception):
    """The endpoint does not speak an API. ``error``: its answer; None for a stream of something else."""

    def __init__(self, error: openai.APIError | None = None) -> None:
        self.error = error


class _OfferRefused(Exception):
    """The endpoint refuses what it was offered; it is not offered again."""


class Endpoint:
    """One model of an endpoint. ``max_retries``: number of further requests after one that failed for the moment."""

    def __init__(self, model: str, key: str, base_url: str, timeout_seconds: float, max_retries: int) -> None:
        self.model, self.max_retries, self.timeout_seconds = model, max_retries, timeout_seconds
        self.where = without_credentials(base_url) if base_url else "the OpenAI API"
        self._key, self._base_url = key, base_url
        self._apis: tuple[Api, ...] = (ResponsesAPI(), ChatCompletions(of_openai=not base_url))
        self._largest_limit = _LARGEST_LIMIT

    def pieces(self, call: Call) -> Iterator[Piece]:
        """The pieces of the answer as they arrive. Raises the errors of ``openai``, Unreadable, ServerFailure."""
        with self._client(call) as client:
            api, events = self._answered(client, call)
            if not call.ended.is_set():  # a cancelled call has no events, whichever API it is
                _ANSWERED[self._base_url] = api.name
            yield from map(api.piece, events)

    def offered_bytes(self, wanted: Wanted) -> int:
        """Maximum number of bytes that are sent besides the prompt of an answer of the form ``wanted``."""
        return max(api.offers.size(wanted) for api in self._apis)

    def _answered(self, client: openai.OpenAI, call: Call) -> tuple[Api, Iterator[Any]]:
        """The API that the endpoint speaks, and the events of its answer."""
        while True:
            try:
                return self._by_one_of(self._in_order(call.wanted), client, call)
            except _OfferRefused:
                continue

    def _by_one_of(self, apis: Iterable[Api], client: openai.OpenAI, call: Call) -> tuple[Api, Iterator[Any]]:
        errors: list[openai.APIError] = []
        for api in apis:
            try:
                return api, self._events(api, client, call)
            except _NotSpoken as refused:
                if getattr(refused.error, "status_code", 0) < 500:  # others may be of a server that is starting
                    api.offers.withdraw(call.wanted)
                errors += [refused.error] if refused.error else []
        raise _most_telling(errors[::-1])

    def _in_order(self, wanted: Wanted) -> list[Api]:
        """The APIs in the order in which they are asked: for a spec those that may have grammars, of these Chat
        Completions first, since SGLang has grammars only there; then the one that answered last, or Responses."""
        last = _ANSWERED.get(self._base_url, ResponsesAPI.name)
        helping = [api for api in reversed(self._apis) if wanted == "spec" and wanted in api.offers]
        return list(dict.fromkeys([*helping, *sorted(self._apis, key=lambda api: api.name != last)]))

    def _events(self, api: Api, client: openai.OpenAI, call: Call) -> Iterator[Any]:
        import openai

        try:
            events = iter(self._opened(api, client, call))
        except openai.InternalServerError as error:
            if self._base_url in _ANSWERED:
                raise
            raise _NotSpoken(error) from None  # some gateways fail at the path of an API that they do not speak
        first = next(events, _NOTHING)
        if not api.speaks(first):
            raise _NotSpoken()
        return events if first is _NOTHING else chain([first], events)

    def _opened(self, api: Api, client: openai.OpenAI, call: Call) -> Iterable[Any]:
        import openai

        failures = 0
        while not call.ended.is_set():
            limit = None if call.most_tokens is None else min(call.most_tokens, self._largest_limit)
            try:
                stream = api.opened(client, self.model, call.prompt, limit, api.offers.options(call.wanted))
                call.begun, call.limit = True, limit
                return stream
            except openai.APIError as error:
                if _no_such_api(error):
                    raise _NotSpoken(error) from None
                if _refuses_options(error) and (api.adapt(str(error)) or self._lower_limit(str(error), limit)):
                    continue
                if _refuses_options(error) and api.offers.refused(call.wanted, str(error)):
                    raise _OfferRefused() from None
                failures += 1
                call.begun = arrived(error)
                self._wait(error, failures, call)
        return ()

    def _wait(self, error: openai.APIError, failures: int, call: Call) -> None:
        """Waits until the request may be sent again, or nobody needs it any longer. Raises ``error`` if it may not."""
        seconds = wait_seconds(error, failures)
        if seconds is None or failures > self.max_retries:
            raise error
        status = getattr(error, "status_code", None)
        why = f"{self.where} answered {status}" if status else f"cannot reach {self.where}"
        call.say(f"{why}; trying again in {seconds:.1f} s ({failures} of {self.max_retries})")
        call.ended.wait(seconds)

    def _lower_limit(self, refusal: str, limit: int | None) -> bool:
        """Halves the limit of an answer if the server's message ``refusal`` is about it; False if it is not, or the
        limit is as small as it can be."""
        if limit is None or limit < 2 * _SMALLEST_LIMIT or not any(name in refusal for name in _ABOUT_THE_LIMIT):
            return False
        self._largest_limit = limit // 2
        return True

    def _client(self, call: Call) -> openai.OpenAI:
        import openai

        return openai.OpenAI(
            api_key=self._key or "none", base_url=self._base_url or None, max_retries=0,
            timeout=openai.Timeout(self.timeout_seconds, connect=min(self.timeout_seconds, _CONNECT_SECONDS)),
            http_client=openai.DefaultHttpxClient(event_hooks={"request": [call.watch], "response": [bounded]}),
            default_headers={"Accept-Encoding": "identity"},
        )  # fmt: skip


def no_such_model(error: Exception) -> bool:
    """Whether the server's ``error`` says that it has no such model."""
    status, said = getattr(error, "status_code", 0), str(error).lower()
    if getattr(error, "code", None) == _NO_SUCH_MODEL or (status == 404 and "model" in said):
        return True
    return status == 400 and "invalid model name" in said  # LiteLLM


def _no_such_api(error: openai.APIError) -> bool:
    """Whether ``error`` says that the endpoint has no such path; a message about the model may mean the same."""
    status = getattr(error, "status_code", 0)
    if status == 400:  # vLLM: "The model does not support Responses API"
        return "responses api" in str(error).lower()
    return status in _NO_SUCH_PATH and error.code != _NO_SUCH_MODEL


def _most_telling(errors: list[openai.APIError]) -> openai.APIError:
    """The error about the model, else one that is not about the path."""
    return max(errors, key=lambda error: (no_such_model(error), not _no_such_api(error)))


def _refuses_options(error: openai.APIError) -> bool:
    return getattr(error, "status_code", 0) in (400, 422)
