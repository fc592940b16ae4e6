"""Counts of tokens before a request is sent, and of answers whose server reports none."""

from __future__ import annotations

import math

from cutegen_lab.core.candidate import TokenUsage

FRAMING_TOKENS = 128  # what a chat template adds to one message: 7 (OpenAI) to about 100 (gpt-oss)
# Prompts have 3.3 to 3.7 bytes per token, Python of templates at least 2.69 (cl100k, o200k, DeepSeek's, Claude 2's).
_BYTES_PER_TOKEN = 2.5
_PROMPT_BYTES_PER_TOKEN, _KERNEL_BYTES_PER_TOKEN = 3.4, 2.7


def most_tokens(prompt: str, model: str) -> int:
    """Maximum number of tokens of a request with ``prompt``: exact if tiktoken is installed and knows ``model``, else
    one for each byte of UTF-8, the most that a tokenizer of bytes makes."""
    exact = _by_tiktoken(prompt, model)
    return (size(prompt) if exact is None else exact) + FRAMING_TOKENS


def estimated_tokens(length: int) -> int:
    """Number of tokens of ``length`` bytes, an overestimate for prompts and kernels."""
    return math.ceil(length / _BYTES_PER_TOKEN)


def typical_tokens(length: int) -> int:
    """Number of tokens of ``length`` bytes, an underestimate for kernels; for progress."""
    return length // 4


def estimated_usage(sent_bytes: int, received_bytes: int) -> TokenUsage:
    """Usage of a request and its answer of so many bytes."""
    sent, answered = estimated_tokens(sent_bytes), estimated_tokens(received_bytes)
    return TokenUsage(sent, answered, estimated=sent + answered)


def usage_by_length(prompt: str, answer: str, before: str) -> TokenUsage:
    """Likely usage of an exchange, from its bytes alone. ``before``: the prompt before it, whose beginning a server's
    cache of prefixes would serve as far as ``prompt`` begins with the same text."""
    sent, received = size(prompt) / _PROMPT_BYTES_PER_TOKEN, size(answer) / _KERNEL_BYTES_PER_TOKEN
    same = next((n for n, (mine, its) in enumerate(zip(prompt, before, strict=False)) if mine != its), len(before))
    cached = math.floor(size(prompt[:same]) / _PROMPT_BYTES_PER_TOKEN)
    counts = (math.ceil(sent), math.ceil(received))
    return TokenUsage(counts[0], counts[1], cached=cached, estimated=sum(counts))


def size(text: str) -> int:
    """Bytes of ``text`` as UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def _by_tiktoken(text: str, model: str) -> int | None:
    try:
        import tiktoken

        return len(tiktoken.encoding_for_model(model).encode(text, disallowed_special=()))
    except Exception:  # not installed, an unknown model, or a vocabulary that cannot be downloaded
        return None
