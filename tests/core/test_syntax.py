"""Parsing from many threads at once, which CPython 3.11 alone does not survive."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from cutegen_lab.core.syntax import expression, parse

SOURCE = "x = " + "+".join(f"f(a[{i}], (b, {i}))" for i in range(400))


def test_many_threads_get_the_same_tree() -> None:
    want = ast.dump(ast.parse(SOURCE))
    with ThreadPoolExecutor(8) as threads:
        assert {ast.dump(tree) for tree in threads.map(parse, [SOURCE] * 40)} == {want}


@pytest.mark.parametrize("deep", ["a" + ".a" * 600, "-" * 600 + "1", "-" * 100_000 + "1", "+".join("a" * 600)])
def test_what_is_nested_too_deep_is_a_syntax_error(deep: str) -> None:
    with pytest.raises(SyntaxError, match="nested over 500 levels deep"):
        parse(f"\nx = {deep}\n")


def test_syntax_errors_pass_through() -> None:
    with pytest.raises(SyntaxError):
        parse("def f(:")


def test_one_expression() -> None:
    assert ast.unparse(expression("(a +\n b)")) == "a + b"
    for text in ("a = b", "a b", "", "a\nb"):
        with pytest.raises(SyntaxError):
            expression(text)
