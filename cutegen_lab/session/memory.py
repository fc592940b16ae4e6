"""What worked here: the facts of the finished runs of a store, mined once for each run."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.facts import Fact, KnownFact, facts_of, grouped, relevant
from cutegen_lab.core.idea_results import Expectation, expectations
from cutegen_lab.core.ideas import Change
from cutegen_lab.core.protocols import GenerateRequest, Store
from cutegen_lab.core.run import RunState
from cutegen_lab.loop.history import History
from cutegen_lab.session.kernels import write_atomically

VERSION = 1


class Memory:
    """The facts of the runs in ``store``; ``file`` keeps those that were mined. Thread-safe. A file that cannot be read
    is mined again; one that cannot be written costs time only."""

    def __init__(self, store: Store, file: Path) -> None:
        self._store, self._file, self._lock = store, file, threading.Lock()
        self._runs: dict[str, dict[str, object]] | None = None

    def facts(self) -> tuple[KnownFact, ...]:
        """Every fact, the latest run's first. Raises StoreError."""
        return tuple(fact for run_id, kept in self._mined().items() for fact in _known(run_id, kept))

    def expectations(self) -> dict[str, tuple[Expectation, ...]]:
        """By model, what it expected of its changes and what came. Raises StoreError."""
        found: dict[str, list[Expectation]] = {}
        for kept in self._mined().values():
            for model, expectation in _expected(kept):
                found.setdefault(model, []).append(expectation)
        return {model: tuple(each) for model, each in found.items()}

    def recall(self, request: GenerateRequest) -> tuple[str, ...]:
        """What the model is told for ``request``; nothing if the store cannot be read."""
        from cutegen_lab.providers.prompt_topics import work_class

        try:
            facts = self.facts()
        except CutegenError:
            return ()
        if not facts:
            return ()
        trial = request.parent.trial if request.parent else None
        limiter = trial.profile.limiter if trial is not None and trial.profile is not None else ""
        kind = work_class(request.problem, request.gpu)
        return tuple(map(str, relevant(facts, kind, request.gpu.name, request.problem.key, limiter)))

    def _mined(self) -> dict[str, dict[str, object]]:
        with self._lock:
            known = self._read() if self._runs is None else self._runs
            runs: dict[str, dict[str, object]] = {}
            for run in self._store.runs():
                if run.trashed_at is not None or not run.outcome:
                    continue
                kept = known.get(run.run_id, {})
                if kept.get("updated_at") != run.updated_at:
                    kept = {**self._mined_if_readable(run.run_id), "updated_at": run.updated_at}
                runs[run.run_id] = kept
            if runs != known:
                self._write(runs)
            self._runs = runs
            return runs

    def _mined_if_readable(self, run_id: str) -> dict[str, object]:
        """What :meth:`_mine` finds; nothing of a run that cannot be read, as one of another version."""
        try:
            return self._mine(run_id)
        except CutegenError:
            return {"class": "other", "gpu": "", "problem": "", "facts": [], "expected": []}

    def _mine(self, run_id: str) -> dict[str, object]:
        from cutegen_lab.core.roofline import target_gpu
        from cutegen_lab.providers.prompt_topics import work_class

        events = self._store.events(run_id)
        state: RunState = History.of(events).state
        gpu = target_gpu(state.settings.arch, state.settings.gpu)
        facts = () if state.imported else facts_of(state)
        model = next((c.proposal.model for c in state.candidates.values() if c.proposal.model), "")
        return {
            "class": work_class(state.problem, gpu) if facts else "other",
            "gpu": gpu.name,
            "problem": state.problem.key,
            "facts": [asdict(fact) for fact in facts],
            "expected": [
                [model, each.expected.metric, each.expected.fraction, each.came.fraction]
                for each in (() if state.imported else expectations(state))
            ],
        }

    def _read(self) -> dict[str, dict[str, object]]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            if found.get("version") != VERSION:
                return {}
            runs: dict[str, dict[str, object]] = found["runs"]
            for run_id, kept in runs.items():
                grouped(_known(run_id, kept)), _expected(kept), kept["updated_at"]
            return runs
        except (OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError):
            return {}

    def _write(self, runs: dict[str, dict[str, object]]) -> None:
        try:
            write_atomically(self._file, json.dumps({"version": VERSION, "runs": runs}))
        except (OSError, CutegenError):
            return


def _expected(kept: dict[str, object]) -> list[tuple[str, Expectation]]:
    rows = kept["expected"]
    assert isinstance(rows, list)
    return [
        (str(model), Expectation(Change(str(metric), float(expected)), Change(str(metric), float(came))))
        for model, metric, expected, came in rows
    ]


def _known(run_id: str, kept: dict[str, object]) -> Sequence[KnownFact]:
    facts = kept["facts"]
    assert isinstance(facts, list)
    place = (str(kept["class"]), str(kept["gpu"]), str(kept["problem"]), run_id)
    return [KnownFact(Fact(**fact), *place) for fact in facts]
