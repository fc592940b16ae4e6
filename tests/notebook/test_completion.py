"""Tab in a real shell, through IPython's completer."""

from __future__ import annotations

from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from cutegen_lab.core.verbs import VERBS
from cutegen_lab.notebook.run import NotebookRun
from tests.notebook.test_magics import started

pytestmark = pytest.mark.kernel


def completed(shell: InteractiveShell, cell: str) -> list[str]:
    """What Tab offers at the end of the first line of ``cell``."""
    assert shell.Completer is not None
    at = len(cell.partition("\n")[0])
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(cell, at)]


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
    ],
)
def test_options_values_and_verbs(shell: InteractiveShell, line: str, offers: list[str]) -> None:
    assert completed(shell, f"{line}\ndef reference(x): ...") == offers
    assert not Path(".cutegen").exists() or shell.user_ns.get("run"), "completing opens no store"


def test_every_verb_is_offered(shell: InteractiveShell) -> None:
    assert {*VERBS, "runs", "show", "export", "import", "help"} == set(completed(shell, "%cutegen "))


def test_files_are_left_to_the_shell(shell: InteractiveShell) -> None:
    Path("kernel_of_mine.py").touch()
    for line in ("%cutegen edit kernel_of", "%%cutegen_tune --kernel kernel_of"):
        assert completed(shell, line) == ["kernel_of_mine.py"]


def test_runs_and_candidates(shell: InteractiveShell) -> None:
    run: NotebookRun = started(shell)
    for line in ("%cutegen show ", "%cutegen resume ", "%cutegen approve --run ", "%%cutespec --run "):
        assert run.run_id in completed(shell, line)
    assert completed(shell, "%cutegen branch ") == ["c1"]
