"""What counts as an answer."""

from __future__ import annotations

import pytest

from cutegen_lab.providers.answers import MalformedAnswer, parse

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
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(MalformedAnswer, match=says):
        parse(text)
