"""``cutegen layout`` from outside."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tests.cli.command import cutegen, only_object


def test_prints_the_grid(place: Path) -> None:
    done = cutegen(place, "layout", "((2,4),8):((1,16),2)")
    assert done.returncode == 0 and "2 16 18 20 22 24 26 28 30" in done.stdout, done


def test_writes_a_picture_and_no_other_file(place: Path) -> None:
    words = ("layout", "(32,32):(33,1)", "--access", "4B", "--svg", "a.svg")
    done = cutegen(place, *words)
    assert done.returncode == 0 and "wrote a.svg" in done.stdout
    assert ElementTree.parse(place / "a.svg").getroot().tag.endswith("svg")  # noqa: S314
    assert cutegen(place, *words).returncode == 0, "its own picture is replaced"
    (place / "a.svg").write_text("<svg>mine</svg>")
    done = cutegen(place, *words)
    assert done.returncode == 2 and "cutegen did not write it" in done.stderr
    assert (place / "a.svg").read_text() == "<svg>mine</svg>"


def test_says_how_another_part_is_drawn(place: Path) -> None:
    done = cutegen(place, "layout", "(128,256):(256,1)", "--svg", "part.svg")
    assert "Shown: rows 0 to 63 of 128; --rows A:B chooses another part\n" in done.stdout, done
    assert "columns 0 to 31 of 256; --columns A:B chooses another part" in (place / "part.svg").read_text()


def test_json(place: Path) -> None:
    facts = only_object(cutegen(place, "layout", "--tma", "64x64", "bf16", "128B", "--access", "16B", "--json"))
    assert facts["layout"] == "Sw<3,3,3> o 0 o (64,64):(64,1)"
    assert (facts["access"]["wavefronts"], facts["access"]["conflicts"]) == (4, 0)


def test_bad_input_is_one_line(place: Path) -> None:
    for words, said in (
        (("(8,2",), "is not closed"),
        (("8:1", "--swizle", "3,4,3"), "Did you mean '--swizzle'?"),
        (("8:1", "--major", "m"), "invalid choice"),
        ((), "there is nothing to draw. Give one of a layout, --mma, --tma and --copy."),
        (("8:1", "--threads", "8"), "Add --access 16B."),
        (("--tma", "64x64"), "tma takes a box, a dtype and a swizzle, not '64x64'. Write it as --tma 64x64 bf16 128B."),
        (("(8,8)", "--divide", "(3,3)", "--access", "4B"), "Leave out --divide."),
        (("(8,8)", "--rows", "5"), "cannot read rows '5'. Write it as --rows 0:64."),
    ):
        done = cutegen(place, "layout", *words)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done
