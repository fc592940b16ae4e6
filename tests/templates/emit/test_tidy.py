"""Blank lines and line breaks of what is left."""

from __future__ import annotations

import libcst as cst

from cutegen_lab.templates.emit.tidy import joined, tidy, wrapped

LONG = "argument_number_one_of_many, " * 5


def test_statements_are_joined_where_they_fit_and_broken_where_they_do_not() -> None:
    assert joined("f(\n    a,\n    b,\n)") == "f(a, b)"
    one = "x = (\n    1,\n)\n"  # a tuple, which must keep its comma
    assert tidy(cst.parse_module(one)).code == one
    text = tidy(
        cst.parse_module(f"f(\n    a,\n    b,\n)\ng(\n    a,  # kept\n)\nh({LONG}last)\ny = '[ (' + g( 1)\n")
    ).code
    assert text.startswith("f(a, b)\ng(\n    a,  # kept\n)\nh(\n    argument") and text.endswith("y = '[ (' + g( 1)\n")
    assert max(map(len, text.splitlines())) <= 120


def test_arguments_are_in_as_few_lines_as_the_last_brackets_allow() -> None:
    for length, lines in ((60, 1), (105, 3), (112, 6)):
        argument = "a" * length
        text = tidy(cst.parse_module(f"f(\n    {argument},\n).launch(\n    grid=[1],\n    stream=stream,\n)\n")).code
        assert text.startswith("f(\n" if lines == 6 else f"f({argument}).launch(") and text.count("\n") == lines


def test_words_for_a_formatter_go() -> None:
    text = "f(\n    a,\n    b,\n)  # fmt: skip\n\n\ndef g(\n    a, b,\n):  # fmt: skip\n    return a  # kept\n"
    assert "fmt" not in tidy(cst.parse_module(text)).code


def test_a_comment_behind_a_long_line_goes_above_it() -> None:
    line = f"x = {'a + ' * 28}a"
    assert tidy(cst.parse_module(f"{line}  # why\ny = 1  # this\n")).code == f"# why\n{line}\ny = 1  # this\n"


def test_what_ends_in_no_bracket_stays_long() -> None:
    line = f"x = f({LONG}1) + 1"
    assert wrapped(line, 60) == line


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
        tidy(cst.parse_module(text)).code
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
    assert tidy(cst.parse_module(text)).code == "def f():\n    return 1\n    # of f\n# of all\n"
