"""Texts for one config alone that a view shows: of templates only, made once."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.forks import ForkEnded
from cutegen_lab.session import shown_texts
from cutegen_lab.session.shown_texts import ShownTexts, wait_for
from cutegen_lab.session.specialised import Written
from cutegen_lab.templates.emit.folding import folded_values
from cutegen_lab.templates.emit.refusal import CannotSpecialise
from cutegen_lab.views.specialised import SpecialisedText
from tests.harness.checking import problem_of

PROBLEM = problem_of("x * 2", "x: f32[64,64]")


def state(*providers: str) -> Any:
    found = {f"c{at}": Candidate(f"c{at}", None, name, Proposal(f"text {at}", "")) for at, name in enumerate(providers)}
    return SimpleNamespace(
        candidates=found, compiled=dict.fromkeys(found), problem=PROBLEM, settings=SimpleNamespace(arch="sm_90a")
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def specialised(
        compiler: Any, problem: Any, source: str, config: Any, arch: str, stop: threading.Event, call: Any
    ) -> Written:
        found.append(source)
        return Written(source, config) if source == "text 1" else Written(f"only {source}", {}, {}, {2: 1})

    monkeypatch.setattr(shown_texts, "specialised", specialised)
    return found


def texts(folder: Path) -> ShownTexts:
    return ShownTexts(folder, lambda: None)  # type: ignore[arg-type,return-value]


def test_a_text_is_made_once_and_kept(tmp_path: Path, made: list[str]) -> None:
    one, told = texts(tmp_path / "kept"), list[int]()
    assert one.known(state("templates")) == {} and made == []
    wait_for(one.begin(state("templates"), lambda: told.append(1)))
    assert one.known(state("templates")) == {"c0": SpecialisedText("only text 0", {2: 1})} and told == [1]
    assert one.begin(state("templates")) == [] and made == ["text 0"]
    again = texts(tmp_path / "kept")
    assert again.known(state("templates")) == one.known(state("templates")) and made == ["text 0"]
    one.close()


def test_texts_of_others_and_those_without_a_proof_are_shown_as_they_are(tmp_path: Path, made: list[str]) -> None:
    one, of = texts(tmp_path), state("openai", "templates", "templates")
    del of.compiled["c2"]
    wait_for(one.begin(of))
    wait_for(one.begin(of))
    assert one.known(of) == {} and made == ["text 1"]
    one.close()
    assert one.begin(of) == []


def test_a_kept_text_that_is_damaged_is_made_again(tmp_path: Path, made: list[str]) -> None:
    one = texts(tmp_path)
    wait_for(one.begin(state("templates")))
    (path,) = tmp_path.glob("*.json")
    path.write_text("{")
    assert texts(tmp_path).known(state("templates")) == {}
    one.close()


def test_texts_are_folded_in_a_process_of_their_own(tmp_path: Path) -> None:
    one = texts(tmp_path)
    assert one._call(os.getpid) != os.getpid() and one._call(os.path.basename, "a/b") == "b"
    with pytest.raises(CannotSpecialise, match="is not valid Python"):
        one._call(folded_values, "def", {})
    one.close()
    with pytest.raises((ForkEnded, Cancelled)):
        one._call(os.getpid)


def test_a_process_that_ends_leaves_the_general_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*given: Any) -> Written:
        given[-1](os._exit, 1)
        raise AssertionError("it ended")

    monkeypatch.setattr(shown_texts, "specialised", ends)
    one = texts(tmp_path)
    wait_for(one.begin(state("templates")))
    assert one.known(state("templates")) == {}
    one.close()
