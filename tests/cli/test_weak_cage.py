"""What the command line says on machines that lack isolation, and the word it takes to go on without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import KERNEL, Done, environment, only_object
from tests.compile.denied import boot_without

pytestmark = pytest.mark.kernel


def cutegen_without(groups: tuple[str, ...], place: Path, *arguments: str, **extra: str) -> Done:
    text = f"{boot_without(*groups)}\nimport sys\nfrom cutegen_lab.cli import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", text, *arguments], cwd=place, capture_output=True, text=True, timeout=240,
        env=environment(place, CUTEGEN_CACHE=str(place / "cache"), **extra),
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("groups", "status", "said"),
    [
        (("namespaces",), 0, "no namespaces: Landlock and the list of system calls isolate candidates"),
        (("landlock",), 0, "no Landlock: a candidate can read your files but cannot send them anywhere"),
        (("namespaces", "landlock"), 1, "a candidate is not isolated: nothing keeps it from your files"),
    ],
)
def test_doctor_names_what_is_missing(place: Path, groups: tuple[str, ...], status: int, said: str) -> None:
    done = cutegen_without(groups, place, "doctor", "--json")
    data = only_object(done)
    cage = next(f for f in data["findings"] if f["name"] == "compile cage")
    assert (done.returncode, cage["ok"]) == (status, status == 0) and said in cage["detail"], cage
    assert status == 0 or "CUTEGEN_ALLOW_WEAK_CAGE=1 or say --allow-weak-cage" in cage["action"]


def test_a_candidate_runs_without_walls_by_word_only(place: Path) -> None:
    kernel = place / "kernel.py"
    kernel.write_text(KERNEL.read_text() + "\n1 / 0\n")
    nothing = ("namespaces", "landlock")
    judge = ("judge", "softmax.py", "kernel.py", "--json")
    refused = cutegen_without(nothing, place, *judge)
    assert refused.returncode == 2 and "this machine cannot cage a candidate" in refused.stderr, refused
    assert "--allow-weak-cage" in refused.stderr and json.loads(refused.stdout)["verdict"] is None
    for word, environ in (("--allow-weak-cage", {}), ("", {"CUTEGEN_ALLOW_WEAK_CAGE": "1"})):
        done = cutegen_without(nothing, place, *judge, *word.split(), **environ)
        assert (done.returncode, only_object(done)["verdict"]) == (3, "compile_error"), done
        (place / "kernel.py").write_text(kernel.read_text() + "# once more, for no cache knows it\n")
    refused = cutegen_without(nothing, place, *judge, CUTEGEN_ALLOW_WEAK_CAGE="0")
    assert refused.returncode == 2
