"""From words to pictures: what is in the cells, and what is refused in one line."""

from __future__ import annotations

import argparse
import shlex

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.options import EXAMPLES, OPTIONS
from cutegen_lab.layouts.picture import Picture
from cutegen_lab.layouts.request import Request


def drawn(words: str) -> Picture:
    parser = argparse.ArgumentParser()
    for name, settings in OPTIONS.items():
        parser.add_argument(name, **settings)
    return Request.of(parser.parse_args(shlex.split(words))).picture()


def cells(picture: Picture, panel: int = 0) -> dict[tuple[int, int], str]:
    return {(cell.row, cell.column): " ".join(cell.lines) for cell in picture.panels[panel].cells}


@pytest.mark.parametrize("words", EXAMPLES)
def test_examples_are_drawn(words: str) -> None:
    picture = drawn(words)
    assert picture.panels[0].cells and picture.text()


def test_coordinates_and_memory() -> None:
    picture = drawn("((2,4),8):((1,16),2)")
    index, place = cells(picture), cells(picture, 1)
    assert index[0, 0] == "0" and index[1, 0] == "1" and index[2, 3] == "22" and len(index) == 64
    assert place[1, 6] == "2,3", "index 22 is in line 1 of 16, at 6"
    assert "((0,1),3) → 22" in {cell.tooltip for cell in picture.panels[0].cells}
    assert picture.facts["indices"][2 + 8 * 3] == 22 and picture.facts["cosize"] == 64


def test_banks_of_a_swizzle() -> None:
    picture = drawn("(8,64):(64,1) --swizzle 128B --dtype f16 --banks")
    banks = {(c.row, c.column): c.owner for c in picture.panels[0].cells}
    assert [banks[row, 0] for row in range(8)] == [f"bank {4 * row}" for row in range(8)]
    assert len(banks) == 8 * 32, "a cell for each bank: two elements"
    assert "on byte addresses it is Sw<3,4,3>" in picture.summary


def test_wavefronts_before_and_after_padding() -> None:
    before, after = (drawn(f"(32,32):({stride},1) --access 4B") for stride in (32, 33))
    assert before.facts["access"]["conflicts"] == 31 and after.facts["access"]["conflicts"] == 0
    assert cells(before, 1) == {(row, 0): f"T{row}" for row in range(32)}
    assert cells(after, 1) == {(0, bank): f"T{bank}" for bank in range(32)}
    assert before.panels[1].rows[:2] == ("1", "2 conflict")
    lane = [c for p in before.panels for c in p.cells if c.owner == "lane 3"]
    assert [c.lines for c in lane] == [("96", "T3"), ("T3",)], "its element and its wavefront light up together"


def test_tiles() -> None:
    picture = drawn("(8,16):(16,1) --divide (2,4)")
    tile = {(c.row, c.column): c.owner for c in picture.panels[0].cells}
    assert tile[0, 0] == tile[1, 3] == "tile 0" and tile[2, 0] == "tile 1" and tile[0, 4] == "tile 4"
    assert picture.facts["divided"] == "((2,4),(4,4)):((16,1),(32,4))"
    assert picture.panels[0].row_lines == {2, 4, 6} and picture.panels[0].column_lines == {4, 8, 12}
    strided = drawn("(8,4):(1,8) --divide (2:4,4:1)")
    tile = {(c.row, c.column): c.owner for c in strided.panels[0].cells}
    assert tile[0, 0] == tile[4, 3] == "tile 0" and tile[1, 0] == "tile 1"
    whole = drawn("(8,4):(1,8) --divide 16")
    assert [c.owner for c in whole.panels[0].cells if c.row == 7] == ["tile 0", "tile 0", "tile 1", "tile 1"]


def test_composition_under_a_swizzle() -> None:
    picture = drawn("Sw<2,3,3> o 0 o (8,64):(64,1) --compose (4:2,8)")
    assert picture.facts["layout"] == "Sw<2,3,3> o 0 o (4,8):(128,1)"


def test_a_fragment_and_its_registers() -> None:
    picture = drawn("--mma sm80 16x8x16 f16 C")
    assert cells(picture)[8, 3] == "T1 V3" and cells(picture, 1)[1, 3] == "8,3"
    assert drawn("--mma sm_90a 64x128x16 bf16 C --columns 120:128").panels[0].cells[-1].lines == ("T127", "V63")
    assert len(drawn("--mma sm90 64x128x16 bf16 A-registers").panels[0].cells) == 64 * 16


def test_operands_and_boxes_lie_alike() -> None:
    box, operand = drawn("--tma 64x64 bf16 128B"), drawn("--mma sm90 64x128x16 bf16 A")
    assert cells(box) == cells(operand) and len(cells(box)) == 64 * 8, "a cell for 16 bytes"
    assert len(cells(drawn("--mma sm90 64x128x16 bf16 B --major mn --swizzle 64B --rows 0:16"))) > 0


def test_a_copy() -> None:
    assert cells(drawn("--copy (16,8):(8,1) (1,8)"))[1, 9] == "T9 V1"


def test_what_is_left_out_is_said() -> None:
    picture = drawn("(128,256):(256,1)")
    assert "Shown: rows 0 to 63 of 128" in picture.summary and "columns 0 to 31 of 256" in picture.summary
    part = drawn("(128,256):(256,1) --rows 100:104 --columns 250:256")
    assert part.panels[0].rows == ("100", "101", "102", "103") and part.panels[0].columns[-1] == "255"
    assert cells(part)[0, 0] == str(100 * 256 + 250)


@pytest.mark.parametrize(
    "words",
    [
        "1",
        "8:0",
        "(8,16):(-1,8)",
        "(3,5):(7,100)",
        "(4,(2,2),3):(1,(4,8),16)",
        "(8,8):(8,1) --dtype f64 --banks",
        "(8,8):(0,1) --banks",
        "(8,1,8):(8,1,1) --access 4B --threads 8",
    ],
)
def test_odd_layouts_are_drawn(words: str) -> None:
    picture = drawn(words)
    assert len(picture.panels[0].cells) == len(picture.panels[0].rows) * len(picture.panels[0].columns)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "nothing to draw. Give one of a layout, an instruction"),
        ("8:1 --tma 64x64 bf16", "layout and tma cannot be drawn in one picture"),
        ("8:1 --threads 8", "threads say where an access goes, and no access is given. Give an access: 4B"),
        ("8:1 --access much", "cannot read the access 'much'"),
        ("8:1 --dtype f17", "unknown dtype 'f17'. Did you mean"),
        ("Sw<1,2,3> o 0 o 64:1 --swizzle 3,4,3", "has a swizzle already"),
        ("--mma sm90 64x128x16 f16", "mma takes an architecture, a shape, a dtype and an operand"),
        ("--mma sm90 64x128 f16 C", "'64x128' is no shape"),
        ("--mma sm90 64x128x16 f16 E", "no operand 'E'"),
        ("--mma sm90 64x128x16 f16 C --banks", "registers have no addresses"),
        ("--mma sm90 64x128x16 f16 A --swizzle 3,4,3", "'3,4,3' is no swizzle mode"),
        ("8:1 --access 4B --threads 'Sw<1,2,3> o 0 o 8:1'", "a layout of threads takes no swizzle. Write it as 32"),
        ("(2,2) --access 4B --threads 8", "Use fewer threads, or others: \\(1,32\\) goes along"),
        ("--tma 64by64 bf16", "cannot read '64by64'"),
        ("--tma 64x64", "tma takes a box, a dtype and a swizzle"),
        ("(8,8) --divide (3,3) --access 4B", "'divide' does not apply: an access .*\\. Leave out: divide"),
        ("(8,8):(8,1) --divide ((2,2),8)", "a tiler of 2 modes does not fit"),
        ("(4096,4096)", "16,777,216 coordinates"),
        ("(8,8) --rows 5", "cannot read rows '5'. Write it as: rows 0:64"),
        ("(8,8) --rows 5:2", "Write it as: rows 0:64"),
        ("(8,8) --rows 9:12", "rows 9:12 begin after the last of 8 rows"),
    ],
)  # fmt: skip
def test_says_what_is_wrong(words: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        drawn(words)
