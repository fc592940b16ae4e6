"""SVG: well-formed, escaped, without scripts, readable in both themes, and with its text beside it."""

from __future__ import annotations

import itertools
import re
from base64 import b64decode
from xml.etree import ElementTree

import pytest

from cutegen_lab.layouts.drawing import html, svg
from cutegen_lab.layouts.options import EXAMPLES
from cutegen_lab.layouts.palette import HUES, PAGE, STRENGTHS, TEXT, fill
from cutegen_lab.layouts.picture import Cell, Panel, Picture, colour_of_lane, colour_of_tile
from tests.layouts.test_request import drawn

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("words", EXAMPLES)
def test_every_cell_is_drawn_once_within_the_picture(words: str) -> None:
    picture = drawn(words)
    root = ElementTree.fromstring(svg(picture))  # noqa: S314 - our own
    wide, high = (float(root.attrib[name]) for name in ("width", "height"))
    boxes = [box for box in root.iter(f"{SVG}rect") if "c" in box.get("class", "").split()]
    assert len(boxes) == sum(len(panel.cells) for panel in picture.panels)
    places = [tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height")) for box in boxes]
    assert len(set(places)) == len(places)
    assert all(x >= 0 and x + w <= wide and y >= 0 and y + h <= high for x, y, w, h in places)
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{name}" for name in ("svg", "title", "desc", "style", "rect", "text", "g")
    } | ({f"{SVG}line"} if "--divide" in words else set())


def test_cells_of_one_owner_are_in_one_group() -> None:
    """CSS lights up a group under the pointer, so that cells of both panels must share it."""
    root = ElementTree.fromstring(svg(drawn("--mma sm80 16x8x16 f16 C")))  # noqa: S314
    groups = [group for group in root.iter(f"{SVG}g") if group.get("class") == "o"]
    assert len(groups) == 32
    told = [[title.text or "" for title in group.iter(f"{SVG}title")] for group in groups]
    assert all(
        len(names) == 8 and len({re.sub(r".*: (thread \d+),.*", r"\1", n) for n in names}) == 1 for names in told
    )


def test_names_and_describes_itself() -> None:
    picture = drawn("(32,32):(32,1) --access 4B")
    root = ElementTree.fromstring(svg(picture))  # noqa: S314
    names = {element.get("id"): element.text for element in root if element.get("id")}
    title, description = (names[name] for name in root.attrib["aria-labelledby"].split())
    assert root.get("role") == "img" and title == "(32,32):(32,1)" and "31 conflicts" in (description or "")


def test_escapes_what_it_writes() -> None:
    cell = Cell(0, 0, ("<script>",), "a\x1b[0m&\u202e", "<o>", "<e>")
    picture = Picture("</svg><b>", (Panel("<i>", ("<r>",), ("<c>",), (cell,)),), ("<n>",))
    for text in (svg(picture), html(picture)):
        assert "<script" not in text and "<b>" not in text and "\x1b" not in text and "\u202e" not in text
        assert "&lt;script&gt;" in text
    ElementTree.fromstring(svg(picture))  # noqa: S314


def test_html_has_the_numbers_as_a_table() -> None:
    text = html(drawn("(2,3):(3,1)"))
    rows = re.findall(r"<tr>(.*?)</tr>", text)
    assert [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows[:3]] == [
        ["", "0", "1", "2"], ["0", "0", "1", "2"], ["1", "3", "4", "5"],
    ]  # fmt: skip
    assert "on" + "click" not in text and "<script" not in text


def test_html_without_styles_and_svg_is_an_image_and_a_table() -> None:
    """What JupyterLab leaves of it in a notebook that is not trusted: text of the tags it drops, hidden."""
    picture = drawn("(2,3):(3,1)")
    text = html(picture)
    inline = re.search(r'<div class="cgl-inline" hidden="hidden" style="display:none">(.*?)</div>', text, re.DOTALL)
    still = re.search(r'<img class="cgl-still" alt="(.*?)" src="data:image/svg\+xml;base64,(.*?)">', text)
    assert inline and still and b64decode(still[2]).decode() == inline[1] == svg(picture)
    rest = text.replace(inline[0], "")
    assert "<svg" not in rest and still[1] == "(2,3):(3,1)"


def test_text_has_contrast_on_every_colour() -> None:
    for number in range(32):
        hue, strength = fill(number)
        for page, text in zip(PAGE, TEXT, strict=True):
            behind = [strength * a + (1 - strength) * b for a, b in zip(_rgb(hue), _rgb(page), strict=True)]
            assert contrast(behind, _rgb(text)) >= 4.5, (number, page)


def test_colours_are_all_different() -> None:
    assert len(set(map(fill, range(32)))) == 32 == len(HUES) * len(STRENGTHS)
    assert {colour_of_lane(n) for n in range(32)} == {colour_of_tile(n) for n in range(32)} == set(range(32))
    hues = [_rgb(hue) for hue in HUES]
    assert min(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in itertools.combinations(hues, 2)) > 60


def _rgb(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def contrast(one: list[float], other: list[float]) -> float:
    """WCAG 2.1, "contrast ratio"."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: list[float]) -> float:
    parts = [v / 255 / 12.92 if v / 255 <= 0.03928 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
