"""Nothing that a candidate or a model writes acts on the terminal, or hides in a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import KERNEL, Done, cutegen

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
EVIL = r"\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\x7f\u202eabc\u2066\u200b"
RAW = EVIL.encode().decode("unicode_escape")
SHOWN = r"\x1b]0;owned\x07"

CANDIDATES = {
    "exception": f'raise ValueError("{EVIL}")\n',
    "exception_of_several_lines": f'raise ValueError("a{EVIL}\\nverdict: passed")\n',
    "remark": f'print("\\nremark[ptxas]: see {EVIL}", flush=True)\n',
    "workspace": f'def workspace(workload, config):\n    raise ValueError("{EVIL}")\n',
    "constraints": f'def constraints(config, workload, device):\n    raise ValueError("{EVIL}")\n',
    "source": f"# {RAW.replace(chr(13), '')}\nraise ValueError('here')  # {RAW.replace(chr(13), '')}\n",
}


def harmless(done: Done) -> None:
    for text in (done.stdout, done.stderr):
        assert not ACTING.search(text), ascii(text)


@pytest.mark.kernel
@pytest.mark.parametrize("kind", CANDIDATES)
def test_judging_such_a_candidate(place: Path, kind: str) -> None:
    path = place / "kernel.py"
    path.write_bytes((KERNEL.read_text() + "\n\n" + CANDIDATES[kind]).encode())
    done = cutegen(place, "judge", "softmax.py", "kernel.py")
    harmless(done)
    assert done.returncode == (0 if kind == "remark" else 3), done.stderr
    assert SHOWN in done.stdout or kind == "source"
    assert [line for line in done.stdout.splitlines() if line.startswith("verdict: ")] == [
        line for line in done.stdout.splitlines() if line.startswith(f"verdict: {'' if done.returncode else 'passed'}")
    ][:1]


@pytest.mark.kernel
def test_a_run_with_such_answers(place: Path) -> None:
    """The title, the reason, and the error of a model's kernels; then the page and the kernel's own comments."""
    talk = place / "talk"
    talk.mkdir()
    head = f"Title: fast {RAW}\nReason: since {RAW}\nPredicted effect: {RAW}\n\n"
    raising = KERNEL.read_text() + "\n\n" + CANDIDATES["exception"]
    for number, source in enumerate((raising, KERNEL.read_text()), 1):
        (talk / f"{number:04}.answer.md").write_bytes(f"{head}```python\n{source}```\n".encode())
    done = cutegen(
        place, "run", "softmax.py", "--provider", "manual:talk", "--auto", "--device", "emulator", "--max-steps", "2",
        "--out", "kernel.py",
    )  # fmt: skip
    harmless(done)
    assert done.returncode == 0 and SHOWN in done.stdout and SHOWN in done.stderr, done.stderr
    (run_id,) = (path.name[: -len("-c2.py")] for path in (place / "lab" / "kernels").iterdir())
    harmless(cutegen(place, "runs", "list"))
    for candidate in ("c1", "c2"):
        shown = cutegen(place, "runs", "show", run_id, "--candidate", candidate)
        harmless(shown)
        assert shown.returncode == 0 and SHOWN in shown.stdout
    compared = cutegen(place, "runs", "show", run_id, "--compare", "c1", "c2", "--ptx")
    harmless(compared)
    assert compared.returncode == 0 and "PTX: c1 did not compile" in compared.stdout, compared.stdout
    unknown = cutegen(place, "runs", "show", run_id, "--compare", "c1", "c9")
    assert unknown.returncode == 2 and "has no candidate 'c9'. Candidates: c1, c2." in unknown.stderr
    assert cutegen(place, "runs", "export", run_id, "--out", "page.html").returncode == 0
    page = (place / "page.html").read_text()
    assert not ACTING.search(page) and SHOWN in page
    assert not ACTING.search((place / "kernel.py").read_text())


def test_debug_tracebacks_and_arguments(place: Path) -> None:
    for arguments in (["sol", f"no{RAW}where.py"], ["judge", f"{RAW}", "x", "--debug"], [f"{RAW}"]):
        done = cutegen(place, *arguments)
        harmless(done)
        assert done.returncode == 2 and SHOWN in done.stderr
