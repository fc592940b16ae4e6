"""Blank lines and line breaks of what is left."""

from __future__ import annotations

import libcst as cst

from cutegen_lab.templates.emit.layout import broken, joined, laid_out
from cutegen_lab.templates.emit.tidy import tidy

LONG = "argument_number_one_of_many, " * 5


def test_statements_are_joined_where_they_fit_and_broken_where_they_do_not() -> None:
    assert joined("f(\n    a,\n    b,\n)") == "f(a, b)"
    one = "x = (\n    1,\n)\n"  # a tuple, which must keep its comma
    assert laid_out(one) == "x = (1,)\n"
    text = laid_out(f"f(\n    a,\n    b,\n)\ng(\n    a,  # kept\n)\nh({LONG}last)\ny = '[ (' + g( 1)\n")
    assert text.startswith("f(a, b)\ng(\n    a,  # kept\n)\nh(\n    argument") and "\ny = '[ (' + g" in text
    assert max(map(len, text.splitlines())) <= 120


def test_headers_are_laid_out_too() -> None:
    header = "def f(\n    a,\n    b,\n):\n    if (\n        a\n    ):\n        return [\n            b,\n        ]\n"
    assert laid_out(header) == "def f(a, b):\n    if (a):\n        return [b]\n"
    parameters = ", ".join(f"argument_number_{at}_of_many" for at in range(6))
    rows = laid_out(f"def f({parameters}):\n    pass\n").splitlines()
    assert rows[0] == "def f(" and all(row.count("argument_number") == 1 for row in rows[1:7]) and rows[7] == "):"


def test_a_comprehension_is_broken_at_its_clauses() -> None:
    line = "xs = [" + "function_of_something(a, b, index_of_it) + " * 2 + "g(x, y) for x, y in zip(ones, others) if y]"
    assert laid_out(line).splitlines()[2:] == ["    for x, y in zip(ones, others)", "    if y", "]"]


def test_a_call_of_what_a_long_call_gives_is_broken_in_both() -> None:
    arguments = ", ".join(f"argument_number_{at}_of_many" for at in range(6))
    rows = laid_out(f"kernel({arguments}).launch(grid=[1, 1, 1], block=[128, 1, 1], stream=stream)\n").splitlines()
    assert rows[0] == "kernel(" and rows[-3:] == [
        ").launch(", "    grid=[1, 1, 1], block=[128, 1, 1], stream=stream", ")"
    ]  # fmt: skip
    assert max(map(len, rows)) <= 120


def test_texts_of_several_lines_and_comments_inside_stay() -> None:
    text = 'x = """a\n  b"""\ny = f(\n    # why\n    1,\n)\n'
    assert laid_out(text) == text


def test_a_comment_behind_a_long_line_goes_above_it() -> None:
    line = f"x = {'a + ' * 28}a"
    assert laid_out(f"{line}  # why\ny = 1  # this\n") == f"# why\n{line}\ny = 1  # this\n"


def test_what_has_no_brackets_stays_long() -> None:
    line = f"x = {'a + ' * 28}a"
    assert broken(line, 60) == [line]


def test_parentheses_that_do_nothing_go() -> None:
    text = "x = (a if b else c)\ny = f((a + b), (c, d))\nz = a or (b < c)\nw = (a + b) * c\n"
    assert tidy(cst.parse_module(text)) == "x = a if b else c\ny = f(a + b, (c, d))\nz = a or b < c\nw = (a + b) * c\n"


def test_blank_lines() -> None:
    text = """
x = 1



y = 2
# of f
def f():

    a = 1


    # of b

    b = 2
    return b
z = 3
"""
    assert (
        tidy(cst.parse_module(text))
        == """x = 1

y = 2


# of f
def f():
    a = 1

    # of b

    b = 2
    return b


z = 3
"""
    )


def test_comments_at_the_end_stay() -> None:
    text = "def f():\n    return 1\n    # of f\n\n\n# of all\n"
    assert tidy(cst.parse_module(text)) == "def f():\n    return 1\n    # of f\n# of all\n"
