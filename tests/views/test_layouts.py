"""The widget's answers about layouts."""

from __future__ import annotations

from cutegen_lab.layouts.traced import MadeLayout
from cutegen_lab.views.layouts import layouts_view
from tests.packaging.make_samples import ANSWERS, layouts_samples


def test_the_front_ends_samples_are_what_the_kernel_answers() -> None:
    for name, text in layouts_samples().items():
        assert (ANSWERS / name).read_text(encoding="utf-8") == text, "run `python tests/packaging/make_samples.py`"


def test_lines_are_those_of_the_shown_text_and_what_it_shows_is_visible() -> None:
    made = MadeLayout("(4,8):(8,1)", "", (7, 9), "layout")
    (shown,) = layouts_view("c1", [made], "first\n  a = b\x1b[31m\u202e\n", {9: 2}).layouts
    assert shown.lines == [2]
    assert shown.text.startswith("a = b") and "\x1b" not in shown.text and "\u202e" not in shown.text
    (gone,) = layouts_view("c1", [made], "", {}).layouts
    assert (gone.lines, gone.text) == ([], "")


def test_the_layout_that_says_most_is_shown_first() -> None:
    small, large = (MadeLayout(text, "", (1,), "layout") for text in ("(2,4):(4,1)", "(32,16):(16,1)"))
    swizzled = MadeLayout("Sw<1,3,3> o 0 o (8,16):(16,1)", "bf16", (1,), "tensor in shared memory")
    copy = MadeLayout("((4,4),(2,1)):((8,1),(4,0))", "", (1,), "tiled copy", (4, 8))
    huge = MadeLayout("(1024,1024):(1024,1)", "", (1,), "layout")
    for made, shown in [([], 0), ([small, large], 1), ([large, swizzled, copy], 2), ([small, swizzled], 1),
                        ([huge, small], 1), ([huge], 0)]:  # fmt: skip
        assert layouts_view("c1", made, "a", None).opens_at == shown
