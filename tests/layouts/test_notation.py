"""Layouts as CuTe prints them."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.layout import Layout
from cutegen_lab.layouts.notation import read_layout, read_swizzle, read_tiler


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("((2,4),8):((1,16),2)", "((2,4),8):((1,16),2)"),
        (" ( (2, 4), 8 ) : ( (1,16), 2 ) ", "((2,4),8):((1,16),2)"),
        ("64:2", "64:2"),
        ("(8):(1)", "(8):(1)"),
        ("(8,16)", "(8,16):(1,8)"),
        ("(_8,_64):(_64,_1)", "(8,64):(64,1)"),
        ("(8,16):(-1,8)", "(8,16):(-1,8)"),
        ("Sw<3,4,3> o 0 o (8,64):(64,1)", "Sw<3,4,3> o 0 o (8,64):(64,1)"),
        ("S<2,3,-3> o 16 o 64:1", "Sw<2,3,-3> o 16 o 64:1"),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", "Sw<3,3,3> o 0 o (8,64):(64,1)"),
    ],
)
def test_reads_and_prints(text: str, read: str) -> None:
    assert str(read_layout(text)) == read
    assert str(read_layout(read)) == read


def test_tilers() -> None:
    assert read_tiler("(2,4)") == (2, 4) and read_tiler("8") == 8
    assert read_tiler("(4:2,(2,2):(1,4))") == (Layout(4, 2), Layout((2, 2), (1, 4)))
    assert read_tiler("<[4:1;8:1]>") == (Layout(4, 1), Layout(8, 1))
    assert read_tiler("(2,4):(1,8)") == Layout((2, 4), (1, 8))


def test_swizzles_of_indices_and_of_addresses() -> None:
    assert str(read_swizzle("3,4,3", 2)) == str(read_swizzle("Sw<3,4,3>", 4)) == "Sw<3,4,3>"
    assert str(read_swizzle("128B", 2)) == "Sw<3,3,3>" and str(read_swizzle("32B", 1)) == "Sw<1,4,3>"
    assert read_swizzle("none", 2) is None
    swizzle = read_swizzle("2,3,3", 1)
    assert swizzle is not None
    assert [swizzle(at) for at in (0, 64, 65, 128)] == [0, 64 ^ 8, 65 ^ 8, 128 ^ 16], "bits 6 and 7 meet bits 3 and 4"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("((2,4),8", "character 1 of .* is not closed"),
        ("(2,4):(1,(2", "character 7 of .* is not closed"),
        ("8:", "something is missing at the end"),
        ("8 8", "cannot read '8'"),
        ("(2,4]", "cannot read"),
        ("hello", "cannot read 'hello'"),
        ("", "something is missing"),
        ("(8,?):(1,?)", "dynamic extents or strides. Write their values as numbers"),
        ("(4,5):(1@0,1@1)", "coordinate strides"),
        ("(0,3)", "extent below 1"),
        ("8:(1,2)", "not nested alike"),
        ("(4:1,8):(1,2)", "a layout where a number belongs"),
        ("Sw<4,3,3> o 0 o 64:1", "Sw<4,3,3> is no swizzle"),
        ("(" * 50 + "1" + ")" * 50, "cannot read"),
    ],
)
def test_says_where_it_cannot_read(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_layout(text)


def test_a_swizzle_that_cannot_be_read() -> None:
    with pytest.raises(InputError, match="or a mode of TMA: none, 32B, 64B, 128B"):
        read_swizzle("129B", 2)
