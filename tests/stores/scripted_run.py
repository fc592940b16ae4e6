"""Drives one scripted run in a process of its own, to be killed.

``point`` ``N`` kills the process right after its Nth event is on disk, ``N-`` right before the transaction of that
event commits, ``never`` lets it end.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

from cutegen_lab.core.run import Budget, Event, Resumed, RunSettings, RunState, StoredEvent
from cutegen_lab.loop import fold
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.scripted import driving, services, started

SOURCES = ["wrong", "time 10", "time 12", "compile_error", "time 8"]
SETTINGS = RunSettings(auto=True, budget=Budget(max_steps=5))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(SqliteStore):
    def __init__(self, path: Path, point: str) -> None:
        super().__init__(path)
        self.point, self.count = point, 0

    def append(self, run_id: str, event: Event, after: RunState | None = None) -> StoredEvent:
        self.count += 1
        if self.point == f"{self.count}-":
            self._connection.set_trace_callback(die_at_commit)
        stored = super().append(run_id, event, after)
        if self.point == str(self.count):
            die()
        return stored


def die_at_commit(statement: str) -> None:
    if statement == "COMMIT":
        die()


def main(path: str, point: str) -> None:
    store = MortalStore(Path(path), point)
    lease = store.lease("r1")
    event = started(settings=SETTINGS)
    try:
        known = bool(store._connection.execute("SELECT 1 FROM runs").fetchone())
    except sqlite3.Error:
        known = False
    if not known:
        store.append("r1", event, fold([event]))
    run = driving(services(store, SOURCES))
    if known:
        run.record(Resumed())
    run.work()
    lease.release()
