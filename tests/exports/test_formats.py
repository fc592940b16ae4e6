"""The table of formats: each is found by its name, or by the end of a file's name, and says what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.exports import FORMATS, format_of
from tests.cli.command import cutegen


@pytest.mark.parametrize(
    ("name", "file", "found"),
    [
        ("", "k.py", "kernel"), ("torch-op", "k.py", "torch-op"), ("", "k.whl", "wheel"), ("", "k.o", "object"),
        ("", "a.cutegen-run.json", "view"), ("", "a.cutegen", "run"), ("", "a.ndjson", "tritonparse"),
        ("sol-execbench", "s.json", "sol-execbench"), ("kernelbench", "k.py", "kernelbench"),
    ],
)  # fmt: skip
def test_found(name: str, file: str, found: str) -> None:
    assert format_of(name, file).name == found


@pytest.mark.parametrize(
    ("name", "file", "says"),
    [
        ("", "s.json", "or give a format too: kernel, torch-op"), ("", "k.txt", "cannot tell from the name 'k.txt'"),
        ("weel", "k.whl", "Did you mean 'wheel'"), ("wheel", "k.py", "Let it end in .whl"),
    ],
)  # fmt: skip
def test_refused(name: str, file: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        format_of(name, file)


def test_the_command_line_lists_them(tmp_path: Path) -> None:
    done = cutegen(tmp_path, "export", "--list", "--json")
    assert done.returncode == 0, done
    listed = json.loads(done.stdout)["formats"]
    assert [each["name"] for each in listed] == list(FORMATS)
    assert all(each["help"] and each["needs"] for each in listed)
    done = cutegen(tmp_path, "export", "--list")
    assert all(name in done.stdout for name in FORMATS)
    done = cutegen(tmp_path, "export")
    assert done.returncode == 2 and "--list lists the formats" in done.stderr
    done = cutegen(tmp_path, "export", "--help")
    assert all(name in "".join(done.stdout.split()) for name in FORMATS), "a line may end at a hyphen"
