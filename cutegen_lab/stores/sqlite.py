"""The store: one SQLite file in WAL mode, fully synchronous: appended events survive SIGKILL and power loss."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.run import MOST_TITLE, Event, RunStarted, RunState, RunSummary, Step, StoredEvent
from cutegen_lab.core.standing import standing
from cutegen_lab.stores.codec import artifact_from_blob, artifact_to_blob, event_from_json, event_to_json
from cutegen_lab.stores.lease import Lease, holder
from cutegen_lab.stores.schema import migrate, refuse_foreign, refuse_newer

BUSY_SECONDS = 10.0


class SqliteStore:
    """A :class:`~cutegen_lab.core.protocols.Store` in the file ``path``; thread-safe, readable by other processes.

    Raises :class:`StoreError` if the file cannot be opened, is not a store, or was written by a newer version.
    """

    def __init__(self, path: Path | str, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path)
        self._locks = self.path.parent / "locks"
        self._clock = clock
        self._lock = threading.RLock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot open {self.path}: {error}", Hint(Advice.WRITABLE_WORKDIR)) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreError(f"cannot open {self.path}: {error}", Hint(Advice.CHECK_DISK)) from error
        except StoreError:
            self._connection.close()
            raise

    def append(self, run_id: str, event: Event, after: RunState | None = None) -> StoredEvent:
        """Appends an event; durable on return. The first event of a run, and only the first, must be RunStarted."""
        now, body = self._clock(), event_to_json(event)
        with self._transaction() as connection:
            if isinstance(event, RunStarted):
                problem = event.problem
                connection.execute(
                    "INSERT INTO runs (run_id, name, problem_key, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
                    (run_id, problem.name, problem.key, now, now),
                )
            (last,) = connection.execute("SELECT max(seq) FROM events WHERE run_id = ?", (run_id,)).fetchone()
            stored = StoredEvent((last or 0) + 1, now, event)
            connection.execute(
                "INSERT INTO events (run_id, seq, at, type, body) VALUES (?, ?, ?, ?, ?)",
                (run_id, stored.seq, now, event.type, body),
            )
            connection.execute("UPDATE runs SET updated_at = ? WHERE run_id = ?", (now, run_id))
            if after is not None:
                _summarise(connection, run_id, after)
        return stored

    def insert(self, events: Sequence[StoredEvent], after: RunState) -> None:
        """Stores a whole run that happened elsewhere, with the times of its events. ``after``: the state they lead to.
        Raises StoreError if there is a run with its id."""
        run_id, problem = after.run_id, after.problem
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO runs (run_id, name, problem_key, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
                (run_id, problem.name, problem.key, events[0].at, events[-1].at),
            )
            _summarise(connection, run_id, after)
            connection.executemany(
                "INSERT INTO events (run_id, seq, at, type, body) VALUES (?, ?, ?, ?, ?)",
                [(run_id, e.seq, e.at, e.event.type, event_to_json(e.event)) for e in events],
            )

    def events(self, run_id: str, after: int = 0) -> list[StoredEvent]:
        """Events with ``seq > after``, in order. Raises StoreError for an unknown run."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT seq, at, body FROM events WHERE run_id = ? AND seq > ? ORDER BY seq", (run_id, after)
            ).fetchall()
            known = rows or connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        if not known:
            raise self._unknown(run_id)
        return [StoredEvent(seq, at, event_from_json(body)) for seq, at, body in rows]

    def runs(self) -> list[RunSummary]:
        """Every run, the most recently written first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT run_id, name, created_at, updated_at, step, outcome, candidates, accepted, problem_key, title,"
                " trashed_at, gpu, device, best_id, best_us, best_kind, speedup, over"
                " FROM runs ORDER BY updated_at DESC, run_id"
            ).fetchall()
        return [RunSummary(r[0], r[1], r[2], r[3], Step(r[4]), *r[5:]) for r in rows]

    def changes(self) -> tuple[int, int]:
        """A value that differs after every change, by this process or another."""
        with self._reading() as connection:
            (others,) = connection.execute("PRAGMA data_version").fetchone()
            return others, connection.total_changes

    def title(self, run_id: str) -> str:
        """The title of a run; "" if it has the name of its problem, or is unknown."""
        with self._reading() as connection:
            row = connection.execute("SELECT title FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        return str(row[0]) if row else ""

    def rename(self, run_id: str, title: str) -> None:
        """Sets the title of a run, on one line and without control characters; "" for the name of its problem. Raises
        InputError for a title that is too long, StoreError for an unknown run."""
        title = one_line(title)
        if len(title) > MOST_TITLE:
            raise InputError(f"the title has {len(title)} characters", f"A title has at most {MOST_TITLE}.")
        self._mark(run_id, "title", title)

    def trash(self, run_id: str, away: bool = True) -> None:
        """Puts a run in the trash, or takes it out again; nothing is deleted. Raises StoreError for an unknown run."""
        self._mark(run_id, "trashed_at", self._clock() if away else None)

    def put_artifact(self, artifact: Artifact, prefix: str = "") -> str:
        """Stores ``artifact`` under the key ``prefix`` + its content hash, and returns this key; equal content is
        stored once."""
        sha, blob = prefix + artifact.sha256, artifact_to_blob(artifact)
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO artifacts VALUES (?, ?, ?)", (sha, blob, self._clock()))
        return sha

    def get_artifact(self, sha256: str) -> Artifact:
        with self._reading() as connection:
            row = connection.execute("SELECT body FROM artifacts WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            raise StoreError(f"no artifact {sha256[:12]} in {self.path}", "Compile the candidate again.")
        return artifact_from_blob(row[0])

    def lease(self, run_id: str) -> Lease:
        """The exclusive right to drive ``run_id``. Raises StoreError naming the process that holds it."""
        return Lease(self._locks, run_id)

    def driven_by(self, run_id: str) -> str:
        """The process that drives ``run_id`` now; "" if none does."""
        return holder(self._locks, run_id)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        refuse_newer(connection, self.path)  # comes first: a newer store is not changed, not even its journal mode
        refuse_foreign(connection, self.path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection)

    def _mark(self, run_id: str, column: Literal["title", "trashed_at"], value: str | float | None) -> None:
        with self._transaction() as connection:
            changed = connection.execute(f"UPDATE runs SET {column} = ? WHERE run_id = ?", (value, run_id)).rowcount  # noqa: S608
        if not changed:
            raise self._unknown(run_id)

    def _unknown(self, run_id: str) -> StoreError:
        names = ", ".join(r.run_id for r in self.runs()[:5]) or "none yet"
        return StoreError(f"no run {run_id!r} in {self.path}", f"Latest runs: {names}.")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except UnicodeEncodeError as error:
                raise StoreError(f"{self.path} cannot contain this text: {error}", Hint(Advice.LIST_RUNS)) from None
            except sqlite3.Error as error:
                raise StoreError(
                    f"{self.path}: {error}", "Check disk space, permissions and other processes."
                ) from error


def _summarise(connection: sqlite3.Connection, run_id: str, state: RunState) -> None:
    """Writes a run's line in the list of runs."""
    best, trials = standing(state), list(state.trials.values())
    facts = {
        "step": state.step.value, "outcome": state.outcome,
        "candidates": len(state.candidates), "accepted": len(state.accepted),
        "gpu": state.sol.gpu, "device": (trials[-1].device if trials else "") or state.settings.device,
        "best_id": best.candidate_id if best else "", "best_us": best.time_us if best else None,
        "best_kind": best.kind if best else "", "speedup": best.speedup if best else None,
        "over": best.over if best else "",
    }  # fmt: skip
    columns = ", ".join(f"{name} = ?" for name in facts)
    connection.execute(f"UPDATE runs SET {columns} WHERE run_id = ?", (*facts.values(), run_id))  # noqa: S608
