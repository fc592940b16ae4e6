"""Parsing from many threads at once, which CPython 3.11 alone does not survive."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from cutegen_lab.core.syntax import parse

SOURCE = "x = " + "+".join(f"f(a[{i}], (b, {i}))" for i in range(400))


def test_many_threads_get_the_same_tree() -> None:
    want = ast.dump(ast.parse(SOURCE))
    with ThreadPoolExecutor(8) as threads:
        assert {ast.dump(tree) for tree in threads.map(parse, [SOURCE] * 40)} == {want}


def test_syntax_errors_pass_through() -> None:
    with pytest.raises(SyntaxError):
        parse("def f(:")
