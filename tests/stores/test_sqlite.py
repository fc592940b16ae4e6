"""The store: what goes in comes out, nothing is changed, other processes may read, versions are respected."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.candidate import Candidate, PromptRef, Proposal
from cutegen_lab.core.errors import StoreError
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Event,
    Generated,
    GenerateFailed,
    Resumed,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
)
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import fold
from cutegen_lab.stores import schema
from cutegen_lab.stores.codec import event_from_json, event_to_json
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.events import checked, compile_failed, compiled, generated, passing, profiled, timed
from tests.loop.scripted import GPU, MAIN, ScriptedCompiler, started

CONFIG = {"n": 4, "flag": True, "rate": 1.0, "name": "x"}
PROPOSAL = Proposal("é\r\n\x00", "t", config=CONFIG, prompts=(PromptRef("a", "1", "f"),))
EVERY_EVENT: list[Event] = [
    started(),
    StepStarted(Step.COMPILE, "c1"),
    Generated(
        Candidate("c1", None, "t", Proposal("é\r\n\x00", "t", config=CONFIG, prompts=(PromptRef("a", "1", "f"),)))
    ),
    GenerateFailed("no", exhausted=True),
    compiled("c1"),
    compile_failed("c1"),
    checked("c1", Verdict.WRONG_RESULT, norm=math.inf),
    timed("c1"),
    timed("c1", fault=True),
    profiled("c1"),
    Answered(Answer("edit", "c1", "text", None, "auto")),
    StepFailed(Step.CHECK, "lost"),
    Resumed(),
    Stopped("enough"),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "lab.db")
    yield store
    store.close()


def begin(store: SqliteStore, run_id: str = "r1") -> None:
    store.append(run_id, started(run_id), fold([started(run_id)]))


@pytest.mark.parametrize("event", EVERY_EVENT, ids=lambda e: e.type)
def test_every_event_comes_back_equal(event: Event) -> None:
    back = event_from_json(event_to_json(event))
    assert back == event
    assert type(back) is type(event)


def test_scalars_keep_their_types_and_floats_every_bit() -> None:
    event = EVERY_EVENT[2]
    back = event_from_json(event_to_json(event))
    assert isinstance(back, Generated)
    assert {k: type(v) for k, v in back.candidate.config.items()} == {
        "n": int,
        "flag": bool,
        "rate": float,
        "name": str,
    }
    odd = checked("c1", norm=0.1 + 0.2)
    assert event_from_json(event_to_json(odd)) == odd
    nan = event_from_json(event_to_json(checked("c1", norm=math.nan)))
    assert math.isnan(nan.result.checks[0].errors[0].norm)  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["{", '{"type": "from_the_future"}', '{"type": "stopped"}', '{"reason": "x"}'])
def test_unreadable_events_say_so(text: str) -> None:
    with pytest.raises(StoreError, match="unreadable event"):
        event_from_json(text)


def test_events_keep_their_order_and_place(store: SqliteStore) -> None:
    begin(store)
    for event in passing("c1"):
        store.append("r1", event)
    assert [e.seq for e in store.events("r1")] == [1, 2, 3, 4, 5, 6]
    assert [e.event for e in store.events("r1", after=1)] == passing("c1")
    assert store.events("r1", after=6) == []


def test_unknown_and_repeated_runs(store: SqliteStore) -> None:
    begin(store)
    with pytest.raises(StoreError, match=r"no run 'r9'.*Latest runs: r1"):
        store.events("r9")
    with pytest.raises(StoreError, match="UNIQUE"):
        begin(store)
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.append("r9", Resumed())


def test_events_cannot_be_changed_or_removed(store: SqliteStore) -> None:
    begin(store)
    other = sqlite3.connect(store.path)
    for statement in ("UPDATE events SET body = '{}'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute(statement)
    other.close()


def test_a_run_is_summarised_in_the_same_transaction(store: SqliteStore) -> None:
    begin(store)
    begin(store, "r2")
    events = [started(), *passing("c1"), Answered(Answer("approve")), Answered(Answer("stop"))]
    store.append("r1", events[-1], fold(events))
    first, second = store.runs()
    assert (first.run_id, first.step, first.outcome) == ("r1", Step.DONE, "accepted")
    assert (first.candidates, first.accepted, first.name) == (1, 1, "Soft Max!")
    assert (second.run_id, second.step, second.outcome) == ("r2", Step.GENERATE, "")


def test_artifacts_are_kept_once_by_content(store: SqliteStore) -> None:
    compiler = ScriptedCompiler()
    never = threading.Event()
    artifact = compiler.compile("time 1", {"n": 1}, [MAIN], "sm_90a", print, never)
    sha = store.put_artifact(artifact)  # type: ignore[arg-type]
    slower = replace(artifact.builds["main"], compile_seconds=9.0)  # type: ignore[union-attr]
    assert store.put_artifact(replace(artifact, builds={"main": slower})) == sha  # type: ignore[type-var, arg-type]
    assert store.get_artifact(sha) == artifact
    (count,) = store._connection.execute("SELECT count(*) FROM artifacts").fetchone()
    assert count == 1
    with pytest.raises(StoreError, match="no artifact"):
        store.get_artifact("0" * 64)
    store._connection.execute("UPDATE artifacts SET body = x'00'")
    with pytest.raises(StoreError, match="unreadable artifact"):
        store.get_artifact(sha)


def test_threads_share_one_store(store: SqliteStore) -> None:
    begin(store)
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(25):
                store.append("r1", Resumed())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [e.seq for e in store.events("r1")] == list(range(1, 202))


def test_a_second_process_reads_while_one_writes(store: SqliteStore) -> None:
    begin(store)
    script = (
        "import sys; from cutegen_lab.stores.sqlite import SqliteStore\n"
        "store = SqliteStore(sys.argv[1]); last = 0\n"
        "while last < 200:\n"
        "    seen = [e.seq for e in store.events('r1')]\n"
        "    assert seen == list(range(1, len(seen) + 1)) and len(seen) >= last, seen\n"
        "    last = len(seen)\n"
    )
    reader = subprocess.Popen([sys.executable, "-c", script, str(store.path)], stderr=subprocess.PIPE, text=True)  # noqa: S603
    for _ in range(199):
        store.append("r1", Resumed())
    _, errors = reader.communicate(timeout=60)
    assert reader.returncode == 0, errors


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "lab.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE future (x); PRAGMA user_version = 99;")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"schema 99; this cutegen-lab reads up to 3\. Upgrade cutegen-lab"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_an_older_store_migrates_with_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "lab.db"
    connection = sqlite3.connect(path, isolation_level=None)
    schema.migrate(connection, schema.MIGRATIONS[:1])
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.execute("INSERT INTO runs VALUES ('r1', 'old', 'key', 1.0, 2.0)")
    connection.execute("INSERT INTO events VALUES ('r1', 1, 1.0, 'run_started', ?)", (event_to_json(started()),))
    connection.close()
    store = SqliteStore(path)
    assert store.events("r1")[0].event == started()
    assert [(r.run_id, r.step, r.candidates) for r in store.runs()] == [("r1", Step.GENERATE, 0)]
    store.append("r1", generated("c1"))
    store.close()


def test_runs_from_before_tell_their_gpu_device_and_best_time(tmp_path: Path) -> None:
    path = tmp_path / "lab.db"
    connection = sqlite3.connect(path, isolation_level=None)
    schema.migrate(connection, schema.MIGRATIONS[:2])
    events = [started(), timed("c1", 12.0), timed("c2", 9.0), timed("c3", fault=True), timed("c4", math.inf)]
    for run_id, bodies in {"r1": [event_to_json(each) for each in events], "r2": ["not JSON"], "r3": []}.items():
        connection.execute(
            "INSERT INTO runs (run_id, name, problem_key, created_at, updated_at) VALUES (?, 'old', 'key', 1.0, 2.0)",
            (run_id,),
        )
        for seq, body in enumerate(bodies, 1):
            kind = "run_started" if seq == 1 else "timed"
            connection.execute("INSERT INTO events VALUES (?, ?, 1.0, ?, ?)", (run_id, seq, kind, body))
    connection.close()
    store = SqliteStore(path)
    told = {r.run_id: (r.gpu, r.device, r.best_id, r.best_us, r.best_kind) for r in store.runs()}
    assert told == {
        "r1": (GPU.name, "auto", "c2", 9.0, "predicted"),
        "r2": ("", "", "", None, ""),
        "r3": ("", "", "", None, ""),
    }
    store.close()


def test_a_run_is_renamed_and_put_in_the_trash_without_losing_anything(store: SqliteStore) -> None:
    begin(store)
    begin(store, "r2")
    before = store.runs()
    store.rename("r1", "softmax; DROP TABLE runs --")
    store.trash("r1")
    by_id = {run.run_id: run for run in store.runs()}
    assert (by_id["r1"].title, by_id["r1"].name) == ("softmax; DROP TABLE runs --", "Soft Max!")
    assert by_id["r1"].trashed_at is not None and by_id["r2"].trashed_at is None
    assert store.events("r1")[0].event == started("r1")
    store.rename("r1", "")
    store.trash("r1", away=False)
    assert store.runs() == before
    for act in (lambda: store.rename("r9", "x"), lambda: store.trash("r9")):
        with pytest.raises(StoreError, match=r"no run 'r9' in .* Latest runs: "):
            act()


def test_a_lock_of_a_hostile_name_is_not_opened(store: SqliteStore, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.lock")
    (store.path.parent / "locks").mkdir()
    os.mkfifo(store.path.parent / "locks/r1.lock")  # opening it would wait for a writer
    (store.path.parent / "locks/r2.lock").symlink_to(tmp_path / "pipe.lock")
    assert [store.driven_by(run_id) for run_id in ("r1", "r2", "../../pipe", "a\0b", "..")] == ["", "", "", "", ""]


def test_a_migration_that_fails_leaves_the_old_schema(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "lab.db", isolation_level=None)
    broken = (*schema.MIGRATIONS[:1], "ALTER TABLE runs ADD COLUMN a TEXT; ALTER TABLE nothing ADD COLUMN b TEXT;")
    with pytest.raises(sqlite3.OperationalError, match="nothing"):
        schema.migrate(connection, broken)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert "a" not in [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
    connection.close()


@pytest.mark.parametrize(
    "hostile",
    [
        "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM artifacts; END",
        "DROP TRIGGER events_no_update; CREATE TRIGGER events_no_update BEFORE UPDATE ON events "
        "BEGIN DELETE FROM artifacts; END",
        "ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ],
)
def test_a_store_that_would_run_something_is_refused(tmp_path: Path, hostile: str) -> None:
    SqliteStore(tmp_path / "lab.db").close()
    SqliteStore(tmp_path / "lab.db").close()  # an honest one is opened again
    connection = sqlite3.connect(tmp_path / "lab.db")
    connection.executescript(hostile)
    connection.close()
    with pytest.raises(StoreError, match="is no store: it has"):
        SqliteStore(tmp_path / "lab.db")


def test_changes_of_this_process_and_of_others_are_seen(store: SqliteStore) -> None:
    begin(store)
    other = SqliteStore(store.path)
    seen = [store.changes()]
    assert store.changes() == seen[0]
    other.rename("r1", "x")
    seen.append(store.changes())
    store.rename("r1", "y")
    seen.append(store.changes())
    assert len(set(seen)) == 3
    other.close()


def test_what_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.db").write_text("not a database, but long enough to be read as one " * 10)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / "lab.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot open"):
        SqliteStore(tmp_path / "file" / "lab.db")


def test_durability_settings(store: SqliteStore) -> None:
    ask = store._connection.execute
    assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ask("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_one_driver_a_run(store: SqliteStore) -> None:
    lease = store.lease("r1")
    with pytest.raises(StoreError, match=r"run r1 is being driven by process \d+"):
        store.lease("r1")
    script = (
        "import sys; from cutegen_lab.stores.sqlite import SqliteStore\n"
        "try: SqliteStore(sys.argv[1]).lease('r1')\n"
        "except Exception as error: print(error)"
    )
    command = [sys.executable, "-c", script, str(store.path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert f"run r1 is being driven by process {os.getpid()}" in told.stdout
    store.lease("r2").release()
    lease.release()
    lease.release()
    store.lease("r1").release()
