"""Libraries by which servers decode under a grammar, as functions that say whether they accept a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Accepts = Callable[[str], bool]
_END = 256  # the token after the 256 bytes, which ends an answer


class _Bytes:
    """A tokenizer of bytes, as llguidance wants it."""

    eos_token_id, bos_token_id = _END, None
    tokens = (*(bytes([value]) for value in range(_END)), b"</s>")
    special_token_ids = (_END,)

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


def _llguidance(syntax: str, grammar: str) -> Accepts:
    llguidance: Any = pytest.importorskip("llguidance", reason="llguidance is not installed")
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()))
    compiled = llguidance.grammar_from(syntax, grammar)
    assert not llguidance.LLMatcher.validate_grammar(compiled, tokenizer)

    def accepts(text: str) -> bool:
        matcher, tokens = llguidance.LLMatcher(tokenizer, compiled), list(text.encode())
        return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())

    return accepts


def _xgrammar(grammar: str) -> Accepts:
    xgrammar: Any = pytest.importorskip("xgrammar", reason="xgrammar (which needs transformers) is not installed")
    info = xgrammar.TokenizerInfo(list(_Bytes.tokens), vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[_END])
    compiled = xgrammar.GrammarCompiler(info).compile_grammar(xgrammar.Grammar.from_ebnf(grammar))

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(text) and matcher.accept_token(_END))

    return accepts


def engine(name: str, grammar: Callable[[Any], str]) -> Accepts:
    """``name``: one of :data:`ENGINES`, of which only the first takes Lark. ``grammar``: gives the grammar in a syntax.
    Skips the test if the library is missing."""
    if name == "xgrammar":
        return _xgrammar(grammar("gbnf"))
    syntax = "lark" if name == "llguidance" else "gbnf"
    return _llguidance(syntax, grammar(syntax))


ENGINES = ("llguidance", "llguidance of GBNF", "xgrammar")
