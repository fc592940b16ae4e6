"""Text that no encoding has (halves of surrogate pairs), wherever a command takes text: one line says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cutegen_lab.core.errors import CutegenError, ProblemError, SpecError
from cutegen_lab.cutespec.build import compile_text
from cutegen_lab.problems import read_text
from tests.cli.command import KERNEL, cutegen

REFERENCE = "def reference(x):{}\n    return x * 2\n"
INPUTS = "x: f32[4, 8]"


@pytest.mark.parametrize(
    ("read", "kind", "says"),
    [
        (lambda: read_text(REFERENCE.format("  # \ud800"), inputs_text=INPUTS), ProblemError, "U+D800 in line 1"),
        (lambda: read_text(REFERENCE.format(""), inputs_text=INPUTS + "\udfff"), ProblemError, "U+DFFF in line 1"),
        (lambda: read_text("x = '\n\udc80'", inputs_text=INPUTS), ProblemError, "U+DC80 in line 2"),
        (lambda: read_text("x = '\0'", inputs_text=INPUTS), ProblemError, "syntax error at line 1"),
        (
            lambda: read_text("x = " + "-" * 200_000 + "1", inputs_text=INPUTS),
            ProblemError,
            "nested over 500 levels deep",
        ),
        (lambda: compile_text("kernel \ud800 for sm_90a\n"), SpecError, "the spec has U+D800 in line 1"),
    ],
)
def test_a_text_with_half_of_a_pair(read: Callable[[], object], kind: type[CutegenError], says: str) -> None:
    with pytest.raises(kind) as raised:
        read()
    assert says in str(raised.value) and str(raised.value).isprintable()


def test_on_the_command_line(place: Path) -> None:
    for arguments, says in (
        (["sol", "softmax.py", "--inputs", "x: bf16[4]\udcff"], "the text of the inputs has U+DCFF"),
        (["run", "softmax.py", "--auto", "--name", "a\udcff"], "the name has U+DCFF"),
        (["runs", "show", "a\udcff"], "lab.db cannot contain this text"),
    ):
        done = cutegen(place, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert says in done.stderr and "internal" not in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.kernel
def test_in_a_config(place: Path) -> None:
    (place / "kernel.py").write_text(KERNEL.read_text())
    done = cutegen(place, "judge", "softmax.py", "kernel.py", "--config", r'{"threads": "\ud800"}')
    assert done.returncode in (2, 3) and "internal error" not in done.stderr + done.stdout, done


def test_a_file_whose_name_is_no_utf8(place: Path) -> None:
    path = place / "soft\udcffmax.py"
    path.write_bytes((place / "softmax.py").read_bytes())
    done = cutegen(place, "sol", path.name)
    assert done.returncode == 0 and r"soft\udcffmax main" in done.stdout
