"""Words that an editor offers next in a spec."""

from __future__ import annotations

import re

import pytest

from cutegen_lab.cutespec import GRAMMAR
from cutegen_lab.cutespec.functions import NAMED
from cutegen_lab.cutespec.parse import DTYPES, STATEMENTS
from cutegen_lab.cutespec.words import words_in_spec

HEAD = "kernel k for sm_90a\nin  x: bf16[M, 256]\nmean_of_x = mean(x, dim=-1, keepdim=true)\n"


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("", list(STATEMENTS)),
        ("s", ["size", "step", "schedule", "stages", "split"]),
        ("in  w: b", ["bf16", "bool"]),
        ("tmp h: f8", ["f8e4m3fn", "f8e5m2"]),
        ("out y: bf16 = ge", ["gelu"]),
        ("out y: bf16[M, 256] = x * me", ["mean_of_x", "mean"]),
        ("h = log_", ["log_softmax"]),
        ('out y: bf16 = gelu(x, appr', ["approximate="]),
        ("out y: bf16 = mean(x, keep", ["keepdim="]),
        ("out y: bf16 = x == me", ["mean_of_x", "mean"]),
        ("schedule p", ["pingpong"]),
        ("with threads_per_row=12", ["128"]),
        ("with vec=4, threads_p", ["threads_per_row="]),
        ("size M", []),
        ("# in x: b", []),
        ("out y: bf16 = x  # ge", []),
    ],
)  # fmt: skip
def test_a_line_of_a_spec(line: str, offers: list[str]) -> None:
    assert words_in_spec(HEAD + line) == offers


@pytest.mark.parametrize(
    ("line", "offers"),
    [("ker", ["kernel"]), ("kernel ", []), ("kernel k ", ["for", "in"]), ("kernel k for sm_9", ["sm_90a"]),
     ("kernel k for sm_90a ", ["in"]), ("kernel k for sm_90a in ", ["tf32"])],
)  # fmt: skip
def test_the_first_line(line: str, offers: list[str]) -> None:
    assert words_in_spec(line) == offers


def test_every_function_is_offered() -> None:
    assert set(NAMED) < set(words_in_spec(HEAD + "out y: bf16 = "))


def test_the_lists_of_words_are_the_grammar_s() -> None:
    grammar = GRAMMAR.read_text()
    dtypes = re.search(r"^DTYPE\.\d: /\(([^)]*)\)", grammar, re.MULTILINE)
    assert dtypes is not None and dtypes[1].split("|") == list(DTYPES)
    assert re.findall(r'^(?:kernel|input|tmp|output|size|step|tile|cluster|schedule|stages|split|align|with): "(\w+)"',
                      grammar, re.MULTILINE) == ["kernel", "in", "tmp", "out", *STATEMENTS[4:]]  # fmt: skip
