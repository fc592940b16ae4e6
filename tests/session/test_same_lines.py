"""Lines of two texts that compile to the same instructions."""

from __future__ import annotations

from cutegen_lab.core.artifact import Build, LaunchPlan, SourceLine
from cutegen_lab.session.same_lines import same_lines

PTX = """
.visible .entry {name}(
){{
\t.loc 1 {first} 0
\tadd.s32 a, b, c;
{between}\tsub.s32 a, b, c;
\tret;
}}
\t.section\t.debug_info
"""


def build(name: str, first: int, second: int | None) -> Build:
    between = "" if second is None else f"\t.loc 1 {second} 0\n"
    lines = [SourceLine(4, first)] + ([] if second is None else [SourceLine(6, second)])
    ptx = PTX.format(name=name, first=first, between=between)
    return Build("", "sm_90a", b"", ptx, (), LaunchPlan(()), tuple(lines))


def test_lines_by_their_instructions() -> None:
    pairs = [(build("general", 3, 5), build("one", 2, 4))]
    assert same_lines("", "", pairs) == {3: 2, 5: 4}


def test_two_lines_that_became_one() -> None:
    assert same_lines("", "", [(build("general", 3, 5), build("one", 2, None))]) == {3: 2, 5: 2}


def test_what_most_instructions_say_counts() -> None:
    """``sub`` and ``ret`` of line 3 are of line 4 now, ``add`` is of line 2."""
    assert same_lines("", "", [(build("general", 3, None), build("one", 2, 4))]) == {3: 4}


def test_a_line_without_instructions_by_its_text_if_that_is_there_once() -> None:
    general = "TUNABLE = {}\n\ndef f():\n    pass\n\ndef g():\n    pass\n"
    assert same_lines(general, "def g():\n    pass\n", []) == {6: 1}
