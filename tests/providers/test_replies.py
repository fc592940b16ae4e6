"""What counts as an answer."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cutegen_lab.providers.replies import MalformedAnswer, parse

MODULE = "import cutlass\n\n\ndef launch(x, stream):\n    return None\n"


def test_prose_and_fields_around_one_module() -> None:
    fields = "**Title:** wide loads\nReason: fewer requests\nPredicted effect: -20% time"
    text = f"{fields}\n\nHere:\n```python\n{MODULE}```\nDone."
    answer = parse(text)
    assert answer.source == MODULE
    assert (answer.title, answer.reason, answer.predicted_effect) == ("wide loads", "fewer requests", "-20% time")


def test_other_blocks_are_not_the_module() -> None:
    assert parse(f"```text\nnot it\n```\n````python\n{MODULE}````").source == MODULE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("I cannot do that.", "no fenced code block"),
        ("```python\nimport cutlass\ndef launch(", "cut off"),
        ("```python\nx = 1\n```", "no code block defines launch"),
        (f"```python\n{MODULE}```\n```python\n{MODULE}x = 1\n```", "2 different code blocks"),
        ("```python\ndef launch(:\n    pass\n```", "syntax error at line 1"),
        ("x" * 500_000, "500,000 characters"),
        (f"```python\n{MODULE}# \ud800\n```", "U.D800 in line 7: half of a surrogate pair"),
        (f"```python\n{MODULE}# \0\n```", "syntax error at line 6: it has a null character"),
        (f"```python\n{MODULE}x = {'-' * 100_000}1\n```", "syntax error at line 1: nested over 500 levels deep"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(MalformedAnswer, match=says):
        parse(text)


LONG = 390_000  # characters; in quadratic time each would take minutes


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "`" * (LONG // 2) + "\n" + "x\n" * (LONG // 4),
        "".join("`" * length + "\n" for length in range(800, 3, -1)),
        "```\n" * (LONG // 4),
        "\n" * LONG,
        "* " * (LONG // 2),
        "Title: a" + " " * LONG + "b",
        "Title" + " " * LONG,
        "> Title:\n" * (LONG // 9),
    ],
)
def test_any_answer_is_read_at_once(text: str) -> None:
    with suppress(MalformedAnswer):
        parse(text)
    assert parse(f"{text[:300_000]}\n````````````python\n{MODULE}\n````````````").source if "`" not in text else True


def test_fences_longer_than_those_inside() -> None:
    inside = 'def launch(x):\n    """\n    ```\n    """\n'
    assert parse(f"````python\n{inside}````").source == inside
    assert parse(f"```python\n{MODULE}`````  \r\n").source == MODULE
    assert parse(f"````\nnever closed\n```python\n{MODULE}```\n").source == MODULE


def test_a_title_below_its_name() -> None:
    assert parse(f"## **Title**:\n**wide loads**\n```python\n{MODULE}```").title == "wide loads"


def test_an_edit_may_change_the_line_of_launch() -> None:
    line = next(line for line in MODULE.splitlines() if line.startswith("def launch"))
    edit = f"<<<<<<< SEARCH\n{line}\n=======\n{line}  # changed\n>>>>>>> REPLACE\n"
    assert f"{line}  # changed" in parse(f"Title: x\n\n```edit\n{edit}```\n", before=MODULE).source
