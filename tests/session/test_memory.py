"""The memory of a store: mined from its finished runs, kept in a file, told to models."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.run import Answer, Answered, Guidance, Stopped
from cutegen_lab.providers.recalled import RecallingProvider
from cutegen_lab.session.memory import Memory
from cutegen_lab.stores.sqlite import SqliteStore
from tests.core.test_facts import by_model
from tests.loop.events import passing
from tests.loop.scripted import started
from tests.providers.requests import attempt, request


def filled(folder: Path) -> SqliteStore:
    """A store with one finished run whose second kernel took 20% less time."""
    from cutegen_lab.loop import advance

    store = SqliteStore(folder / "lab.db")
    state = None
    for event in (
        started(),
        *passing("c1"),
        Answered(Answer("approve")),
        *by_model(passing("c2", "c1", 8.0)),
        Stopped("enough"),
    ):
        state = advance(state, event)
        store.append(state.run_id, event, state)
    return store


def test_facts_are_mined_once_and_read_from_the_file_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    facts = Memory(store, tmp_path / "memory.json").facts()
    assert [(each.fact.claim, round(each.fact.change or 0, 6)) for each in facts] == [("a step", -0.2)]
    monkeypatch.setattr(Memory, "_mine", lambda self, run_id: pytest.fail("mined again"))
    assert Memory(store, tmp_path / "memory.json").facts() == facts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 1, "runs": {"a": {"facts": [{}]}}}',
        '{"version": 1, "runs": {"a": {"facts": {}}}}',
    ],
)
def test_a_file_that_cannot_be_read_is_mined_again(tmp_path: Path, text: str) -> None:
    file = tmp_path / "memory.json"
    file.write_text(text)
    assert len(Memory(filled(tmp_path), file).facts()) == 1
    assert json.loads(file.read_text())["version"] == 1


def test_a_run_in_the_trash_is_forgotten(tmp_path: Path) -> None:
    store = filled(tmp_path)
    memory = Memory(store, tmp_path / "memory.json")
    assert memory.facts()
    store.trash(store.runs()[0].run_id)
    assert memory.facts() == ()


class Listening:
    """A provider that keeps the requests it gets."""

    name = "listening"

    def __init__(self) -> None:
        self.requests: list[GenerateRequest] = []

    def propose(self, request: GenerateRequest, say: object, cancel: object) -> Proposal:
        self.requests.append(request)
        return Proposal("", "")


@pytest.mark.parametrize(("kind", "memory", "told"), [("refine", True, True), ("refine", False, False),
                                                      ("generate", True, True), ("fix", True, False)])  # fmt: skip
def test_a_model_is_told_what_worked_unless_it_fixes_or_memory_is_off(kind: str, memory: bool, told: bool) -> None:
    listening = Listening()
    provider = RecallingProvider(listening, lambda _: ("“two rows”: -20% time",))
    asked = request(kind, attempt() if kind != "generate" else None)  # type: ignore[arg-type]
    provider.propose(replace(asked, guidance=Guidance(memory=memory)), lambda line: None, threading.Event())
    assert bool(listening.requests[0].facts) is told


def test_what_is_told_about_a_problem_is_of_other_problems(tmp_path: Path) -> None:
    memory = Memory(filled(tmp_path), tmp_path / "memory.json")
    (fact,) = memory.facts()
    asked = request()
    assert memory.recall(replace(asked, problem=started().problem)) == ()  # its own problem
    other = memory.recall(asked)
    assert other == (() if fact.work_class != "scan" else ("limited by memory: “a step”: -20% time (predicted)",))


def test_a_run_that_cannot_be_read_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(filled(tmp_path), tmp_path / "memory.json")

    def unreadable(run_id: str) -> dict[str, object]:
        raise InputError("of another version", "")

    monkeypatch.setattr(memory, "_mine", unreadable)
    assert memory.facts() == ()
    assert len(json.loads((tmp_path / "memory.json").read_text())["runs"]) == 1
