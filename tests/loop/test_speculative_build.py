"""The build that follows the likely answer, begun while the candidate before it is judged."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Config, Proposal
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.loop import fold
from cutegen_lab.loop.speculative_build import SpeculativeBuild
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.scripted import ScriptedCompiler, ScriptedDevice, ScriptedProvider, driving, services, started

AUTO = RunSettings(auto=True, budget=Budget(max_steps=4))
SOURCES = ["time 10", "time 12\nslow 0.05", "time 13", "time 9"]


class Foreseeable(ScriptedProvider):
    foreseeable = True


@dataclass
class Remembering(ScriptedCompiler):
    """Keeps what it made, as the cage's compiler does; ``made`` on which thread."""

    made: list[tuple[str, str]] = field(default_factory=list)
    kept: dict[str, Artifact | CompileFailure] = field(default_factory=dict)

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Say, cancel: Cancel
    ) -> Artifact | CompileFailure:
        if source not in self.kept:
            self.made.append((source, threading.current_thread().name))
            self.kept[source] = super().compile(source, config, workloads, arch, say, cancel)
        return self.kept[source]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "lab.db")
    yield store
    store.close()


def ran(store: SqliteStore, kind: str, provider: ScriptedProvider, settings: RunSettings = AUTO) -> Remembering:
    compiler = Remembering()
    chosen = services(store, provider, compiler, ScriptedDevice(kind=kind))
    event = started(settings=settings)
    store.append("r1", event, fold([event]))
    state = driving(chosen).work()
    assert state.accepted == ("c1", "c4") and [c.source for c in state.candidates.values()] == SOURCES
    return compiler


def test_on_a_gpu_what_follows_the_likely_answer_is_compiled_before_it(store: SqliteStore) -> None:
    made = dict(ran(store, "cuda", Foreseeable(SOURCES)).made)
    assert [made[source] == "ahead" for source in SOURCES] == [False, True, True, True]


@pytest.mark.parametrize(("kind", "provider"), [("emulator", Foreseeable), ("cuda", ScriptedProvider)])
def test_neither_where_cores_are_wanted_nor_at_a_models_cost(
    store: SqliteStore, kind: str, provider: type[ScriptedProvider]
) -> None:
    chosen = provider(SOURCES)
    assert "ahead" not in dict(ran(store, kind, chosen).made).values()
    assert len(chosen.requests) == 4


def test_another_proposal_ends_it() -> None:
    begun = threading.Event()

    def compiled(proposal: Proposal, state: object, cancel: Cancel) -> None:
        begun.set()
        cancel.wait(5)

    ahead = SpeculativeBuild(Foreseeable(["one"]), compiled)
    ahead._likely_proposal = lambda state: Proposal("one", "")  # type: ignore[method-assign]
    for proposal, seconds in ((Proposal("other", ""), 0.5), (Proposal("one", ""), None)):
        begun.clear()
        ahead.begin(fold([started(settings=AUTO)]))
        assert begun.wait(5)
        cancel, at = threading.Event(), time.monotonic()
        if seconds is not None:
            ahead.wait(proposal, cancel)
            assert time.monotonic() - at < seconds
            continue
        threading.Timer(0.1, cancel.set).start()
        with pytest.raises(Cancelled):
            ahead.wait(proposal, cancel)
