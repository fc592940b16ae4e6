"""``cutegen memory``: what worked in the runs of a store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.cli import main
from cutegen_lab.core.ideas import Change
from cutegen_lab.core.run import Answer, Answered, Event, Generated, RunState, Stopped
from cutegen_lab.loop import advance
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.events import passing
from tests.loop.scripted import started


def expecting(event: Event) -> Event:
    assert isinstance(event, Generated)
    proposal = replace(event.candidate.proposal, title="two rows a warp", expects=Change("time", -0.3), model="gpt-5")
    return Generated(replace(event.candidate, proposal=proposal))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a run in which a model expected 30% less time, and 20% came."""
    second, *rest = passing("c2", "c1", 8.0)
    events = [started(), *passing("c1"), Answered(Answer("approve")), expecting(second), *rest, Stopped("enough")]
    kept, state = SqliteStore(tmp_path / "lab.db"), None
    for event in events:
        state: RunState | None = advance(state, event)
        assert state is not None
        kept.append(state.run_id, event, state)
    kept.close()
    return tmp_path


def test_changes_are_listed_by_class_and_gpu_with_the_models_expectations(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", "--workdir", str(store)]) == 0
    shown = capsys.readouterr().out
    assert "other, H200" in shown and "-20%  1  two rows a warp" in shown
    assert "gpt-5  1        1 of 1" in shown


def test_json_has_every_fact(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--workdir", str(store), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    (fact,) = found["facts"]
    assert (fact["claim"], round(fact["change"], 6), fact["gpu"]) == ("two rows a warp", -0.2, "H200")
    assert [round(each["came"]["fraction"], 6) for each in found["models"]["gpt-5"]] == [-0.2]


@pytest.mark.parametrize("options", [["--gpu", "H100"], ["--work-class", "scan"]])
def test_a_filter_without_facts_says_so(store: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--workdir", str(store), *options]) == 0
    assert "no change of a kernel fits; there are changes of: other on H200" in capsys.readouterr().out


def test_an_empty_store_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--workdir", str(tmp_path)]) == 0
    assert "no finished run of this store has changed a kernel yet" in capsys.readouterr().out
