"""``cutegen bundle`` from outside."""

from __future__ import annotations

from pathlib import Path

from tests.bundle.folders import write
from tests.cli.command import cutegen, only_object

LAUNCH = """
import cutlass.cute as cute
from tools import helper

# Calls the helper.
@cute.jit
def launch(x, y, stream):
    helper(x, y)
"""


def test_writes_one_file_and_says_where_lines_come_from(place: Path) -> None:
    write(place, {"main.py": LAUNCH, "tools.py": "\n\ndef helper(x, y):\n    return x\n"})
    done = cutegen(place, "bundle", "main.py")
    assert done.returncode == 0 and "judge it by: cutegen judge PROBLEM.py main_bundle.py" in done.stdout, done
    text = (place / "main_bundle.py").read_text()
    assert "# from tools.py:3\ndef helper" in text and "# Calls the helper." in text
    again = cutegen(place, "bundle", "main.py", "--json")
    facts = only_object(again)
    assert again.returncode == 0 and facts["kernel"] == "main_bundle.py" and facts["files"] == ["tools.py", "main.py"]
    piece = facts["map"][0]
    assert text.split("\n")[piece["line"] - 1] == "def helper(x, y):"
    assert (piece["file"], piece["names"], piece["lines"]) == ("tools.py", ["helper"], [[3, 2]])


def test_names_what_the_gate_would_refuse_at_its_own_line(place: Path) -> None:
    write(place, {"main.py": LAUNCH, "tools.py": "def helper(x, y):\n    return eval('x')\n"})
    done = cutegen(place, "bundle", "main.py", "-o", "k.py")
    assert done.returncode == 3 and "tools.py:2: G05-name: the name 'eval' is not allowed" in done.stdout, done
    assert "k.py would be refused" in done.stdout
    (found,) = only_object(cutegen(place, "bundle", "main.py", "-o", "k.py", "--json"))["refused"]
    assert found["from"] == "tools.py:2" and (place / "k.py").read_text().split("\n")[found["line"] - 1].endswith(
        "eval('x')"
    )


def test_says_what_cannot_come_along_and_what_to_do(place: Path) -> None:
    write(place, {"main.py": LAUNCH, "tools.py": "import torch\n\ndef helper(x, y):\n    return torch.ones(1)\n"})
    done = cutegen(place, "bundle", "main.py")
    assert done.returncode == 0
    assert done.stderr.startswith(
        "tools.py:4: helper uses torch.ones, which candidates may not use: its body raises instead."
    )
    assert "Use PyTorch only in the reference" in done.stderr


def test_bad_input(place: Path) -> None:
    (place / "main.py").write_text(LAUNCH)
    done = cutegen(place, "bundle", "main.py")
    assert (
        done.returncode == 2 and "main.py:8: launch uses tools.helper" in done.stderr and done.stderr.count("\n") == 1
    )
    assert "Give a file of tools too" in done.stderr
    done = cutegen(place, "bundle", "main.py", "--entry", "run")
    assert done.returncode == 2 and "defines no run, but launch" in done.stderr
    write(place, {"tools.py": "def helper(x, y): pass\n"})
    done = cutegen(place, "bundle", "main.py", "-o", "main.py")
    assert done.returncode == 2 and "main.py is one of the files to join" in done.stderr
    assert (place / "main.py").read_text() == LAUNCH
