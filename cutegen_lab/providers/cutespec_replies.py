"""Turns an answer in the spec language into the module that the templates write for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import SpecError
from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.verdict import Diagnostic

if TYPE_CHECKING:
    from cutegen_lab.cutespec.decoding import Syntax

_ANSWER = r"""
reasoned: [_THOUGHT] answer
answer: _HEAD _BEGIN _NL* kernel (_NL+ _statement)* _NL+ _END | _DONE
_THOUGHT: /<think>([^<]|<+[^\/<]|<+\/[^t<])*<+\/think>[ \n]*/
_HEAD: /Title: [^\n]+\nReason: [^\n]+\nPredicted effect: [^\n]+\n/
_BEGIN: /(Expect: [^\n]+\n)?(Implements: [^\n]+\n)?(\n?Idea: [^\n]+\n)*\n?```cutespec\n/
_END: /```\n?/
_DONE: /Done: [^\n]+\n?/
"""  # what prompts/_answer_spec.md asks for
_AROUND = 2  # number of lines shown before, and after, the line with the error


def written_out(proposal: Proposal, request: GenerateRequest) -> Proposal:
    """``proposal``, whose source is a spec, with the spec's module and config, or with the error in the spec."""
    from cutegen_lab.cutespec.build import compile_for  # here, since it imports torch

    spec = proposal.source
    try:
        kernel = compile_for(request.problem, request.arch, spec)
    except SpecError as error:
        return replace(proposal, spec=spec, refused=(_diagnostic(error, spec),))
    return replace(proposal, source=kernel.source, config=kernel.config, spec=spec)


def grammar(arch: str) -> dict[str, object]:
    """Description of the language for a prompt: its grammar, its functions, and the parameters of every template for
    ``arch``."""
    from cutegen_lab.cutespec import GRAMMAR
    from cutegen_lab.cutespec.functions import NAMED
    from cutegen_lab.templates.registry import families

    return {
        "grammar": GRAMMAR.read_text().rstrip(),
        "functions": [
            name + (f" ({', '.join(f'{key}=' for key in function.keywords)})" if function.keywords else "")
            for name, function in NAMED.items()
        ],
        "templates": [
            {"name": family.name, "parameters": {n: ", ".join(map(str, v)) for n, v in family.domains.items()}}
            for family in families(arch)
        ],
    }


def answer_grammar(syntax: Syntax) -> str:
    """The grammar of an answer with a spec, for servers that decode under one: the lines of its head, then the spec in
    its block. In "gbnf", reasoning in ``<think>`` may stand before, since these servers apply it to all that a model
    writes."""
    from cutegen_lab.cutespec.decoding import decoding_grammar

    return decoding_grammar(syntax, _ANSWER, "answer" if syntax == "lark" else "reasoned")


def _diagnostic(error: SpecError, spec: str) -> Diagnostic:
    lines = spec.splitlines()
    shown = []
    for number in range(max(error.line - _AROUND, 1), min(error.line + _AROUND, len(lines)) + 1):
        shown.append(f"{number:4} {lines[number - 1]}")
        if number == error.line:
            shown.append(" " * (4 + error.column) + "^")
    return Diagnostic(
        "error", "spec", f"column {error.column}: {error.message.split(': ', 1)[1]}", error.line, "\n".join(shown),
        suggestion=error.action,
    )  # fmt: skip
