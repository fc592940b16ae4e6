"""Tab in a real shell, through IPython's completer."""

from __future__ import annotations

from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from cutegen_lab.core.verbs import VERBS
from cutegen_lab.exports import FORMATS
from cutegen_lab.notebook.run import NotebookRun
from tests.notebook.test_magics import started

pytestmark = pytest.mark.kernel


BODY = "\ndef reference(x): ..."


def completed(shell: InteractiveShell, cell: str, below: str = BODY) -> list[str]:
    """What Tab offers at the end of ``cell``, of which ``below`` is the rest."""
    assert shell.Completer is not None
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(cell + below, len(cell))]


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("%%cutegen --prov", ["--provider"]),
        ("%%cutegen --provider ", ["manual", "manual:DIR", "openai", "replay:FILE", "templates", "templates:CONFIG"]),
        ("%%cutegen --provider te", ["templates", "templates:CONFIG"]),
        ("%%cutegen --name x --arch sm_8", ["sm_80", "sm_89"]),
        ("%%cutegen --gpu H", ["H100", "H200"]),
        ("%%cutegen --budget 6", ["600s", "600s,200000tok"]),
        ("%%cutegen --language ", ["dsl", "spec"]),
        ("%%cutegen --wait --wa", []),
        ("%%cutespec --ch", ["--check"]),
        ("%%cutegen_tune --max", ["--max-seconds"]),
        ("%cute_layout 8:1 --sw", ["--swizzle"]),
        ("%cute_layout 8:1 --swizzle 1", ["128B"]),
        ("%cutegen ap", ["approve", "approve_unproven"]),
        ("%cutegen approve --r", ["--run"]),
        ("%cutegen approve wi", ["within 5%"]),
        ("%cutegen export fl", ["flashinfer-bench"]),
        ("%cutegen export --run a-1b2c k", ["kernel", "kernelbench"]),
        ("%cutegen export --n", ["--no-verify"]),
        ("%cutegen export --general --no-verify --", ["--debug", "--run"]),
        ("x = 1\n%cutegen ret", ["retry"]),
    ],
)
def test_options_values_and_verbs(shell: InteractiveShell, line: str, offers: list[str]) -> None:
    assert completed(shell, line) == offers
    assert not Path(".cutegen").exists() or shell.user_ns.get("run"), "completing opens no store"


def test_every_verb_is_offered(shell: InteractiveShell) -> None:
    assert {*VERBS, "runs", "show", "export", "import", "help"} == set(completed(shell, "%cutegen "))


def test_files_are_left_to_the_shell(shell: InteractiveShell) -> None:
    Path("kernel_of_mine.py").touch()
    for line in ("%cutegen edit kernel_of", "%%cutegen_tune --kernel kernel_of"):
        assert completed(shell, line) == ["kernel_of_mine.py"]


def test_formats_and_files_are_offered_together(shell: InteractiveShell) -> None:
    Path("kernel_of_mine.py").touch()
    assert completed(shell, "%cutegen export kern") == ["kernel", "kernel_of_mine.py", "kernelbench"]
    assert completed(shell, "%cutegen export kernel kern") == ["kernel_of_mine.py"]
    assert set(FORMATS) < set(completed(shell, "%cutegen export "))


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("ker", ["kernel"]),
        ("in x: bf", ["bf16"]),
        ("out y: f32 = log_s", ["log_softmax"]),
        ("with clu", ["cluster_k=", "cluster_m=", "cluster_n="]),
    ],
)
def test_words_of_a_spec(shell: InteractiveShell, line: str, offers: list[str]) -> None:
    assert completed(shell, f"%%cutespec --check\n{line}", "\nsize M=4") == offers
    assert completed(shell, f"\n%%cutespec\n{line}", "") == offers


def test_runs_and_candidates(shell: InteractiveShell) -> None:
    run: NotebookRun = started(shell)
    for line in ("%cutegen show ", "%cutegen resume ", "%cutegen approve --run ", "%%cutespec --run "):
        assert run.run_id in completed(shell, line)
    for line in ("%cutegen branch c", f"%cutegen branch --run {run.run_id} c"):
        assert completed(shell, line) == ["c1"]
    assert completed(shell, "%cutegen pin ") == ["c1:"]
    run.handle.perform("comment", "c1:1", "why this way?")
    assert completed(shell, "%cutegen lift n") == ["n1"]
