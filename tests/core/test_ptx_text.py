"""What is code in a PTX text, and what is refused since two readers may differ on it."""

from __future__ import annotations

import pytest

from cutegen_lab.core.ptx_text import Place, PtxError, code, read

LISTING = """\
// a comment
.version 8.8 /* over
two lines */ .target sm_90a
.visible .entry k()
{
	.loc	1 98 11
	add.s32 %r1, %r2, 3; // "not a string
	.loc	2 7 0, function_name $L__info_string0+4, inlined_at 1 55 3
	.pragma "nounroll";
	ret;
}
	.file	1 "/candidate.py"
	.file	2 "/usr/lib/cute.py", 1700000000, 4096
	.section	.debug_str
	{
	.b8 99,111,100
	}
"""


def test_code_stands_where_it_stood() -> None:
    text = read(LISTING)
    lines = text.code.split("\n")
    assert lines[6].strip() == "add.s32 %r1, %r2, 3;" and lines[2].strip() == ".target sm_90a"
    assert [line.strip() for line in lines[7:10]] == ["", "", "ret;"] and not "".join(lines[11:]).strip()
    assert len(lines) == len(LISTING.split("\n")) and [*map(len, lines)] == [*map(len, LISTING.split("\n"))]
    assert text.files == {1: "/candidate.py", 2: "/usr/lib/cute.py"}
    assert text.places == (Place(6, 1, 98), Place(8, 2, 7, 1, 55))


def test_what_is_assembled_has_the_directives_and_no_comment() -> None:
    listing = read(LISTING).listing
    assert "comment" not in listing and "over" not in listing and "not a string" not in listing
    assert all(kept in listing for kept in ('.pragma "nounroll";', ".loc\t1 98 11", '.file\t1 "/candidate.py"'))
    assert read(listing).code == code(LISTING) == code(code(LISTING))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('.pragma "/*"; mul.f32 %f1, %f1, 0f40490FDB; .pragma "*/";', "has a .pragma"),
        (".loc 1 1 1 mul.f32 %f1, %f1, 0f40490FDB;", "has a .loc"),
        (".loc 1 1 1; mul.f32 %f1, %f1, 0f40490FDB;", "has a .loc"),
        ('.file 1 "a" mul.f32 %f1, %f1, 0f40490FDB;', "has a .file"),
        ('.file 1 "a\\" mul.f32 %f1, %f1, 0f40490FDB; "', "has a .file"),
        (".section .text { mul.f32 %f1, %f1, 0f40490FDB; }", "has a .section"),
        (".section .debug_str { .b8 1; mul.f32 %f1, %f1, 0f40490FDB; }", "has a .section"),
        ("/* mul.f32 %f1, %f1, 0f40490FDB;", "begins a comment that does not end"),
        ('mov.b32 %r1, "/*";', "holds '\"'"),
        ("#define mul add", "holds '#'"),
        ("mul.f32 %f1, \\\n %f1, 0f40490FDB;", r"holds '\\\\'"),
        ("mul.f32\u00a0%f1, %f1, 0f40490FDB;", r"holds '\\xa0'"),
        ("add.s32 %r1, %r1, 1;\r// mul.f32 %f1, %f1, 0f40490FDB;", r"holds '\\r'"),
        ("add.s32 %r1, %r1, '1';", 'holds "\'"'),
    ],
)
def test_what_two_readers_may_read_differently_is_refused(line: str, says: str) -> None:
    with pytest.raises(PtxError, match=says) as refused:
        read(".version 8.8\n" + line)
    assert refused.value.line == 2


@pytest.mark.parametrize("word", ["x.loc 1 1 1", "%.loc 1 1 1", "mov.file", ".located 1", ".sections"])
def test_what_only_looks_like_a_directive_is_code(word: str) -> None:
    assert code(word) == word


LONG = {
    "lines": "\n" * (1 << 21),
    "blanks": " " * (1 << 21),
    "slashes": "/" * (1 << 20),
    "comment": "/*" * (1 << 19) + "*/",
    "locations": ".loc 1 1 1\n" * (1 << 16),
    "braces": "{" * (1 << 20),
    "string": '.file 1 "' + "a" * (1 << 20) + '"',
    "section": ".section .debug_x {" + "1, " * (1 << 18) + "}",
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.timeout(20)  # of quadratic time each would take hours
def test_a_megabyte_is_read_at_once(kind: str) -> None:
    assert len(code(LONG[kind])) == len(LONG[kind])
