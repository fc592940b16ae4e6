"""What keeps a pin, and what breaks it."""

from __future__ import annotations

import pytest

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.notes import Note, Place, place_of, place_text
from cutegen_lab.core.pins import broken, noted_place, place_in

SOURCE = """import cutlass

THREADS = 256
TUNABLE = {"stages": (2, 3, 4)}


@cute.kernel
def kernel(gX, gY):
    # load
    tidx = thread()
    for k in cutlass.range(8, unroll=2):
        a = gX[k]
        gY[k] = a + (
            1
        )
    else:
        tidx = 0
    epilogue(gY, tidx)


def epilogue(gY, tidx):
    gY[tidx] = 0


class Pipe:
    def step(self):
        return 1


def constraints(config):
    return config["stages"] < 4


def launch(x, y, stream, *, stages=3, layout="row"):
    kernel(x, y)
"""
C1 = Candidate("c1", None, "openai", Proposal(SOURCE, "first", config={"vec": 8}))


def pin(place: str, on: Candidate = C1) -> Note:
    where = place_of(place)
    first, last, quote = noted_place(on, where, pin=True)
    return Note("n1", on.id, "keep this", first, last, quote, where.name, pin=True)


def breaks(place: str, *changes: tuple[str, str], **config: object) -> bool:
    source = SOURCE
    for before, after in changes:
        assert before in source
        source = source.replace(before, after, 1)
    proposal = Proposal(source, "next", config={"vec": 8, **config})  # type: ignore[dict-item]
    return broken(pin(place), C1, proposal) is not None


LOOP = "for k in cutlass.range(8, unroll=2):"


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("11-15", ()),
        ("11-15", (("    tidx = thread()\n", "    tidx = thread()\n    more = 1\n"),)),  # it moved
        ("11-15", (("        a = gX[k]\n", "        # a comment\n        a  =  gX[ k ]\n"),)),  # it is laid out anew
        ("11-15", (("gY[tidx] = 0", "gY[tidx] = 1"),)),
        ("11-15", (("def kernel(", "def copy_kernel("), ("    kernel(x", "    copy_kernel(x"))),  # renamed
        ("12-12", ((LOOP, "for k in cutlass.range(8, unroll=4):"),)),  # the loop around it is not pinned
        ("11-11", (("        a = gX[k]\n", "        a = gX[k + 1]\n"),)),  # only the loop's head is
        ("epilogue", (("a = gX[k]", "a = gX[k + 1]"),)),
        ("Pipe.step", (("    def step", "    x = 3\n\n    def step"),)),
        ("stages", (("stages=3", "stages = (3)"), ('"stages": (2, 3, 4)', '"stages": (3,)'))),
        ("layout", (('layout="row"', "layout='row'"),)),
        ("THREADS", (("THREADS = 256", "THREADS = 0x100"),)),
        ("constraints", ()),
        ("11-15", (("THREADS = 256", "THREADS = ("),)),  # no Python: the gate says so
    ],
)  # fmt: skip
def test_what_is_left_as_it_is_keeps_a_pin(place: str, changes: tuple[tuple[str, str], ...]) -> None:
    assert not breaks(place, *changes)


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("11-15", ((LOOP, "for k in cutlass.range(8, unroll=4):"),)),
        ("11-15", (("            1\n", "            2\n"),)),
        ("14", (("            1\n", "            2\n"),)),  # one line of a statement pins the statement
        ("11-15", (("        a = gX[k]\n", "        a = gX[k]\n        a = 0\n"),)),
        ("11-15", (("        a = gX[k]\n", ""),)),
        ("10-11", (("    tidx = thread()\n", ""), ("# load\n", "# load\n    if True:\n        tidx = thread()\n"))),
        ("16-17", (("    else:\n        tidx = 0\n", "        tidx = 0\n"),)),  # out of the loop's else
        ("8", (("def kernel(gX, gY)", "def kernel(gX, gY, n)"),)),
        ("7-8", (("@cute.kernel\n", "@cute.jit\n"),)),
        ("18", (("    epilogue(gY, tidx)\n", ""), ("    gY[tidx] = 0\n", "    epilogue(gY, tidx)\n"))),  # elsewhere
        ("epilogue", (("gY[tidx] = 0", "gY[tidx] = 1"),)),
        ("epilogue", (("def epilogue(gY, tidx):\n    gY[tidx] = 0\n", ""),)),
        ("Pipe", (("return 1", "return 2"),)),
        ("step", (("return 1", "return 2"),)),
        ("stages", (("stages=3", "stages=4"),)),
        ("stages", (("stages=3", "depth=3"),)),
        ("layout", (('layout="row"', 'layout="column"'),)),
        ("THREADS", (("THREADS = 256", "THREADS = 128"),)),
        ("TUNABLE", (("(2, 3, 4)", "(2, 3)"),)),
        ("constraints", (('config["stages"] < 4', "True"),)),
    ],
)
def test_what_is_changed_breaks_a_pin(place: str, changes: tuple[tuple[str, str], ...]) -> None:
    assert breaks(place, *changes)


def test_a_config_decides_over_the_default_in_the_text() -> None:
    assert not breaks("stages", stages=3)
    assert breaks("stages", stages=4)
    assert not breaks("stages", ("stages=3", "stages=4"), stages=3)
    assert not breaks("vec") and breaks("vec", vec=4)


def test_it_says_what_is_pinned_and_what_is_there() -> None:
    changed = Proposal(SOURCE.replace("            1\n", "            2\n"), "next")
    found = broken(pin("11-15"), C1, changed)
    assert found is not None and (found.severity, found.code, found.line) == ("error", "pin", 11)
    assert found.message == "pin n1 (“keep this”): lines 11–15 of c1 must not change"
    assert "-             1" in found.excerpt and "+             2" in found.excerpt
    found = broken(pin("stages"), C1, Proposal(SOURCE.replace("stages=3", "stages=4"), "next"))
    assert found is not None and found.excerpt == "- stages = 3\n+ stages = 4"
    found = broken(pin("epilogue"), C1, Proposal("def launch():\n    pass\n", "next"))
    assert found is not None and found.excerpt == "(it is not there)" and found.line == 0


def test_hundreds_of_terms_are_compared() -> None:
    terms = " + ".join(f"a{n}" for n in range(450))
    long = Candidate("c1", None, "openai", Proposal(f"x = {terms}\n", "sum"))
    note = pin("1", long)
    assert broken(note, long, Proposal(f"x = {terms}\n# more\n", "next")) is None
    assert broken(note, long, Proposal(f"x = {terms.replace('a7 ', 'b7 ')}\n", "next")) is not None
    number = Candidate("c1", None, "openai", Proposal(f"x = 0x{'f' * 9000}\n", "a number of 10,000 digits"))
    assert broken(pin("x", number), number, Proposal("x = True\n", "next")) is not None


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("99", "c1 has no text at lines 99 to 99: it has"),
        ("2", "they are empty"),
        ("9", "lines 9 to 9 of c1 have no code to keep"),
        ("stagse", "Did you mean 'stages'?"),
        ("gX", "has no parameter, function or top-level name 'gX'"),
        ("x", "has no parameter, function or top-level name 'x'"),  # of launch, without a value
        ("14-10", "there are no lines 14 to 10"),
        ("0", "there are no lines 0 to 0"),
        ("", "no place is named"),
        ("lines 3", "is neither lines nor a name"),
    ],
)
def test_a_pin_on_nothing_is_refused(place: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        pin(place)


def test_places_are_written_and_read() -> None:
    assert place_of("c2:10-14") == Place("c2", 10, 14)
    assert place_of(" 7 ") == Place("", 7, 7)
    assert place_of("c2:Pipe.step") == Place("c2", name="Pipe.step")
    assert place_text("c2", (10, 14), "") == "c2:10-14" and place_text("", (), "stages") == "stages"
    for lines, name in (((), ""), ((1, 2), "stages"), ((1, 2, 3), "")):
        with pytest.raises(InputError, match="a note is on either lines or a name"):
            place_text("c2", lines, name)


def test_a_place_is_found_in_a_later_text() -> None:
    later = Proposal("# new\n" + SOURCE, "next")
    assert place_in(pin("11-15"), C1, later) == (12, 16)
    assert place_in(pin("epilogue"), C1, later) == (22, 23)
    assert place_in(pin("kernel"), C1, later)[0] == 8  # type: ignore[index] # its decorator
    assert place_in(pin("stages"), C1, later) == (35, 35)
    assert place_in(pin("vec"), C1, later) is None
    assert place_in(pin("epilogue"), C1, Proposal("(", "broken")) is None
