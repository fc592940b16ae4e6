"""``%cute_layout`` in a real shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from cutegen_lab.core.errors import InputError


def test_draws_and_returns_a_picture(shell: InteractiveShell) -> None:
    shown = shell.run_line_magic("cute_layout", 'Sw<3,4,3> o 0 o (8,64):(64,1) --divide "(4,8)"')
    data, _ = shell.display_formatter.format(shown)
    assert "<svg " in data["text/html"] and "zipped_divide by (4,8)" in data["text/plain"]
    assert shown.facts["divided"] == "Sw<3,4,3> o 0 o ((4,8),(2,8)):((64,1),(256,8))"


def test_says_how_another_part_is_drawn(shell: InteractiveShell) -> None:
    shown = shell.run_line_magic("cute_layout", "(128,256):(256,1)")
    assert "Shown: rows 0 to 63 of 128; --rows A:B chooses another part\n" in repr(shown)
    data, _ = shell.display_formatter.format(shown)
    assert "--columns A:B chooses another part" in data["text/html"]


def test_json_and_files(shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "with space.svg"
    assert shell.run_line_magic("cute_layout", f'(2,2):(2,1) --json --svg "{file}"') is None
    assert json.loads(capsys.readouterr().out)["indices"] == [0, 2, 1, 3]
    assert file.read_text().count('<rect class="c"') == 8


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("(8,2", "is not closed"),
        ("8:1 --bansk", "Did you mean '--banks'"),
        ("--mma sm90 64x12x16 f16 C", "wgmma of f16 has no shape"),
        ("--mma sm90 64x128x16 f16", "operand, not 'sm90 64x128x16 f16'. Write it as --mma sm90 64x128x16 f16 C."),
        ("(8,8) --rows 5", "cannot read rows '5'. Write it as --rows 0:64."),
        ("8:1 --major n", "`%cute_layout\\?` explains the options"),
    ],
)
def test_fails_with_one_line(shell: InteractiveShell, line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        shell.run_line_magic("cute_layout", line)


def test_help_has_examples(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("cute_layout", "--help") is None
    assert "%cute_layout --mma sm90 64x128x16 f16 C" in capsys.readouterr().out
