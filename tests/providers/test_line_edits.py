"""Answers that edit lines of the candidate instead of repeating it."""

from __future__ import annotations

import pytest

from cutegen_lab.providers.replies import MalformedAnswer, parse

BEFORE = """import cutlass

WIDTH = 4


def kernel(x):
    a = x + 1
    b = x + 2
    return a


def launch(x, stream, *, vec=WIDTH):
    kernel(x)
    return None
"""


def answer(*edits: tuple[str, str], one_block: bool = True) -> str:
    each = [f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n" for old, new in edits]
    blocks = ["".join(each)] if one_block else each
    return "Title: wider\nReason: because\n\n" + "".join(f"```edit\n{block}```\n" for block in blocks)


@pytest.mark.parametrize("one_block", [True, False])
def test_edits_change_their_lines_and_no_others(one_block: bool) -> None:
    edits = [
        ("WIDTH = 4   \n", "WIDTH = 8\n"),
        ("    b = x + 2\n    return a\n", "    return a\n"),
        ("    kernel(x)\n", ""),
    ]
    found = parse(answer(*edits, one_block=one_block), before=BEFORE)
    expected = BEFORE.replace("= 4", "= 8").replace("    b = x + 2\n", "").replace("    kernel(x)\n", "")
    assert (found.source, found.title) == (expected, "wider")


def test_an_edit_is_of_the_text_that_was_shown_also_after_another() -> None:
    found = parse(
        answer(("WIDTH = 4\n", "WIDTH = 4\nVEC = 2\n"), ("import cutlass\n", "import cutlass as c\n")), before=BEFORE
    )
    assert found.source.startswith("import cutlass as c\n\nWIDTH = 4\nVEC = 2\n")


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ([("    c = x\n", "")], "edit 1: the candidate has no line `c = x`"),
        ([("WIDTH = 4\n", "WIDTH = 8\n"), ("    a = x + 7\n", "")], "edit 2: .* `a = x [+] 7`; it has `a = x [+] 1`"),
        ([("\n", "x = 1\n")], "no line to search for"),
        ([("\n\n", "")], "no line to search for"),
        ([("    a = x + 1\n    return a\n", "")], "not stand one after another"),
        ([("WIDTH = 4\n", "WIDTH = 8\n"), ("WIDTH = 4\n", "WIDTH = 2\n")], "edits 1 and 2 are of the same lines"),
        ([("WIDTH = 4\n", "WIDTH = 4 \n")], "change nothing"),
        ([("WIDTH = 4\n", "WIDTH = (\n")], "syntax error"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(edits: list[tuple[str, str]], says: str) -> None:
    with pytest.raises(MalformedAnswer, match=says):
        parse(answer(*edits), before=BEFORE)


def test_lines_that_stand_twice_need_more_of_them() -> None:
    with pytest.raises(MalformedAnswer, match="stand 2 times"):
        parse(answer(("x = 1\n", "")), before=BEFORE + "x = 1\nx = 1\n")


@pytest.mark.parametrize("block", ["WIDTH = 8\n", "<<<<<<< SEARCH\nWIDTH = 4\n=======\nWIDTH = 8\n",
                                   "=======\n<<<<<<< SEARCH\n>>>>>>> REPLACE\n"])  # fmt: skip
def test_a_block_of_another_form_is_said(block: str) -> None:
    with pytest.raises(MalformedAnswer, match="an edit block"):
        parse(f"Title: x\n```edit\n{block}```\n", before=BEFORE)


def test_edits_need_a_candidate_and_no_module_beside_them() -> None:
    edit = answer(("WIDTH = 4\n", "WIDTH = 8\n"))
    with pytest.raises(MalformedAnswer, match="no code block defines launch"):
        parse(edit)
    with pytest.raises(MalformedAnswer, match="one of the two"):
        parse(f"{edit}```python\n{BEFORE}```\n", before=BEFORE)


def test_indentation_is_a_change_and_other_ends_of_lines_stay() -> None:
    before = "# a\x0cb\u2028c\n" + BEFORE
    found = parse(answer(("    kernel(x)\n    return None\n", "    kernel(x)\n    return  None\n")), before=before)
    assert found.source == before.replace("return None", "return  None")
    dedented = parse(answer(("    b = x + 2\n", "b = x + 2\n"), ("    return a\n", "")), before=BEFORE)
    assert "\nb = x + 2\n" in dedented.source
