"""A suite whose model, endpoint or files are bad: each row says why, the budget holds, and the rest goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.suite.files import problem_files
from cutegen_lab.suite.purse import Purse
from cutegen_lab.suite.record import Row
from cutegen_lab.suite.runner import SuiteRun
from tests.providers.server import Script, serving
from tests.providers.test_runs_with_a_model import NONSENSE, opened

SETTINGS = RunSettings(
    provider="openai", model="m", device="emulator", auto=True, budget=Budget(max_steps=1, max_fixes=1)
)
KERNEL = "Title: t\nReason: r\nPredicted effect: e\n\n```python\ndef launch(x): ...\n```"
ANSWER_TOKENS = 150  # of each answer of the server, by its account


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two problems, and two files that are none, between them."""
    texts = {
        "1_first": "def reference(x):  # x: f32[8, 8]\n    return x + 1\n",
        "2_broken": "def reference(x:\n",
        "3_raises": "def reference(x):  # x: f32[8, 8]\n    return x @ x[:, :3].nothing\n",
        "4_last": "def reference(x):  # x: f32[8, 8]\n    return x + 2\n",
    }
    (tmp_path / "set").mkdir()
    for name, text in texts.items():
        (tmp_path / "set" / f"{name}.py").write_text(text)
    (tmp_path / "set" / "5_latin.py").write_bytes(b"# caf\xe9\ndef reference(x): ...\n")
    return tmp_path


def rows(folder: Path, url: str, tokens: int | None = None) -> dict[str, Row]:
    with opened(folder / "lab", url) as session:
        run = SuiteRun(session, SETTINGS, lambda file: lambda notice: None, Purse(tokens))
        run.check()
        return {row.name: row for _, row in run.rows(problem_files([folder / "set"]), lambda file: None)}


def outcomes(found: dict[str, Row]) -> list[str]:
    return [row.outcome for row in found.values()]


@pytest.mark.parametrize(
    ("script", "says", "requests"),
    [
        (Script(NONSENSE), "no fenced code block, twice", 8),  # each of two runs asks twice, and once more for each
        (Script(statuses=[401] * 99), "refused the API key", 0),
        (Script(apis=()), "has no /responses and no /chat/completions", 0),
    ],
)
def test_a_bad_model_is_named_in_every_row_and_asked_again_by_the_same_command(
    folder: Path, script: Script, says: str, requests: int
) -> None:
    with serving(script) as url:
        found = rows(folder, url)
    assert outcomes(found) == ["nothing accepted", "not read", "not read", "nothing accepted", "not read"]
    assert says in found["1_first"].reason and says in found["4_last"].reason
    assert sum(row.tokens for row in found.values()) == requests * ANSWER_TOKENS
    with serving(Script(KERNEL)) as url:
        again = rows(folder, url)
    assert outcomes(again) == ["correct", "not read", "not read", "correct", "not read"]
    assert again["4_last"].tokens == found["4_last"].tokens + ANSWER_TOKENS


def test_files_that_are_no_problems_are_named(folder: Path) -> None:
    with serving(Script(KERNEL)) as url:
        found = rows(folder, url)
    reasons = {name: row.reason for name, row in found.items() if row.outcome == "not read"}
    assert reasons["2_broken"].startswith("syntax error at line 1")
    assert "AttributeError" in reasons["3_raises"] and "is not a text file" in reasons["5_latin"]


def test_nobody_listening_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutegen_lab.providers.openai.provider.ATTEMPTS", 1, raising=False)
    monkeypatch.setattr("cutegen_lab.providers.openai.backoff._FIRST_SECONDS", 0.01)
    with serving(Script()) as url:
        pass
    found = rows(folder, url)
    assert outcomes(found) == ["nothing accepted", "not read", "not read", "nothing accepted", "not read"]
    assert "cannot reach" in found["1_first"].reason and not found["1_first"].tokens


def test_nonsense_uses_no_more_than_the_suites_budget(folder: Path) -> None:
    script = Script(NONSENSE)
    with serving(script) as url:
        found = rows(folder, url, tokens=2 * ANSWER_TOKENS)
    assert len(script.requests) == 2  # the model is not even asked a second time for the first problem
    assert outcomes(found) == ["not run", "not read", "not read", "not run", "not read"]
    assert found["1_first"].tokens == 2 * ANSWER_TOKENS and "the suite's 300 tokens are used" in found["4_last"].reason
