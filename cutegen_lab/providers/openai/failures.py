"""Why a model gave no usable answer, each as a ProviderError of one line with a next action, without credentials."""

from __future__ import annotations

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.secrets import Secrets
from cutegen_lab.providers.openai.backoff import MAX_WAIT_SECONDS, asked_seconds
from cutegen_lab.providers.openai.endpoint import Endpoint, no_such_model
from cutegen_lab.providers.openai.stream import Ending, ServerFailure, Unreadable

_QUOTED = 300  # maximum number of characters of a server's message


def explained(error: Exception, endpoint: Endpoint, secrets: Secrets) -> ProviderError:
    """The ``error`` of a request to ``endpoint`` as a ProviderError."""
    import openai

    where, model = endpoint.where, endpoint.model
    detail = (secrets.masked(str(error)).splitlines() or [""])[0][:_QUOTED]
    match error:
        case ProviderError():
            return error
        case openai.AuthenticationError():
            return ProviderError(f"{where} refused the API key", "Check OPENAI_API_KEY.")
        case openai.APIStatusError() if no_such_model(error):
            return ProviderError(f"{where} has no model {model!r}", Hint(Advice.OTHER_MODEL))
        case openai.NotFoundError():
            message = f"{where} has no /responses and no /chat/completions ({detail})"
            return ProviderError(message, "Check OPENAI_BASE_URL: most end in /v1.")
        case openai.RateLimitError():
            return _limited(error, endpoint)
        case openai.APITimeoutError():
            return ProviderError(f"{where} did not answer within {endpoint.timeout_seconds:g} s", "Retry.")
        case openai.APIStatusError():
            return ProviderError(f"{where} answered {error.status_code}: {detail}", "Retry, or check the options.")
        case openai.APIConnectionError():
            return ProviderError(f"cannot reach {where}", "Check OPENAI_BASE_URL and the network.")
        case Unreadable():
            return ProviderError(f"the answer of {where} cannot be used: {detail}", "Retry, or try another server.")
        case ServerFailure():
            return ProviderError(f"{where} failed during the answer: {detail}", "Retry, or try another model.")
    return ProviderError(f"the answer of {where} could not be read: {type(error).__name__}: {detail}", "Retry.")


def unfinished(ending: Ending, model: str, limit: int | None, capped: bool, words: str) -> ProviderError:
    """An answer of ``model`` that ended other than COMPLETE. ``limit``: maximum number of tokens that was sent;
    ``capped``: whether a cap of the run set it; ``words``: what the model wrote as its refusal."""
    match ending:
        case Ending.TRUNCATED if capped:
            message = f"the answer of {model} was cut off at {limit:,} tokens, which is all that the run's caps leave"
            return ProviderError(message, "Raise the cap of tokens or dollars, or accept a kernel found so far.")
        case Ending.TRUNCATED:
            at = f" ({limit:,} tokens)" if limit is not None else ""
            message = f"the answer of {model} was cut off at the server's maximum length{at}"
            return ProviderError(message, "Raise the server's limit or context length, or choose another model.")
        case Ending.FILTERED:
            message = f"a content filter stopped the answer of {model}"
            return ProviderError(message, "Change the names and comments of the reference, or choose another model.")
        case Ending.REFUSED:
            said = f": {one_line(words)[:_QUOTED]}" if words.strip() else ""
            return ProviderError(f"{model} refused to answer{said}", Hint(Advice.OTHER_MODEL))
    return ProviderError(f"the stream from {model} ended before the answer did", "Retry.")


def _limited(error: Exception, endpoint: Endpoint) -> ProviderError:
    where = endpoint.where
    if getattr(error, "code", None) == "insufficient_quota":
        return ProviderError(f"the quota of the key at {where} is used up", "Add credit, or use another key.")
    asked = asked_seconds(error)  # type: ignore[arg-type]
    if asked > MAX_WAIT_SECONDS:
        return ProviderError(f"{where} limits the rate, and asks to wait {asked:,.0f} s", "Wait that long, then retry.")
    tries = endpoint.max_retries
    return ProviderError(f"{where} still limits the rate after {tries} retries", "Wait, then retry.")
