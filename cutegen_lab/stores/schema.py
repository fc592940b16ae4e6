"""The store's tables, and the migration of older files. ``PRAGMA user_version`` counts the migrations applied."""

from __future__ import annotations

import sqlite3

from cutegen_lab.core.errors import StoreError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.plain_text import one_line

_APPEND_ONLY = "".join(
    f"""
    CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;"""
    for verb in ("UPDATE", "DELETE")
)

MIGRATIONS: tuple[str, ...] = (
    # 1: runs, their events, artifacts by content hash
    f"""
    CREATE TABLE runs (
        run_id TEXT PRIMARY KEY, name TEXT NOT NULL, problem_key TEXT NOT NULL,
        created_at REAL NOT NULL, updated_at REAL NOT NULL
    ) STRICT;
    CREATE TABLE events (
        run_id TEXT NOT NULL REFERENCES runs(run_id), seq INTEGER NOT NULL, at REAL NOT NULL,
        type TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run_id, seq)
    ) STRICT, WITHOUT ROWID;
    {_APPEND_ONLY}
    CREATE TABLE artifacts (sha256 TEXT PRIMARY KEY, body BLOB NOT NULL, at REAL NOT NULL) STRICT;
    """,
    # 2: a run's line in `runs list`, written with each event
    """
    ALTER TABLE runs ADD COLUMN step TEXT NOT NULL DEFAULT 'generate';
    ALTER TABLE runs ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN candidates INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0;
    """,
    # 3: a run's title and whether it is in the trash; its GPU, device and fastest kernel, which for older runs are read
    # from their events
    """
    ALTER TABLE runs ADD COLUMN title TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN trashed_at REAL;
    ALTER TABLE runs ADD COLUMN gpu TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN device TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN best_id TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN best_us REAL;
    ALTER TABLE runs ADD COLUMN best_kind TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN speedup REAL;
    ALTER TABLE runs ADD COLUMN over TEXT NOT NULL DEFAULT '';
    UPDATE runs SET (gpu, device) = (
        SELECT json_extract(body, '$.sol.gpu'), json_extract(body, '$.settings.device') FROM events
        WHERE events.run_id = runs.run_id AND type = 'run_started'
    ) WHERE EXISTS (
        SELECT 1 FROM events WHERE events.run_id = runs.run_id AND type = 'run_started' AND json_valid(body)
        AND json_type(body, '$.sol.gpu') = 'text' AND json_type(body, '$.settings.device') = 'text'
    );
    UPDATE runs SET (best_id, best_us, best_kind) = (
        SELECT json_extract(body, '$.candidate_id'), json_extract(body, '$.timing.time_us'),
        json_extract(body, '$.timing.kind') FROM events
        WHERE events.run_id = runs.run_id AND type = 'timed' AND json_valid(body)
        AND json_type(body, '$.timing.time_us') IN ('real', 'integer')
        ORDER BY json_extract(body, '$.timing.kind') = 'measured' DESC, json_extract(body, '$.timing.time_us') LIMIT 1
    ) WHERE EXISTS (
        SELECT 1 FROM events WHERE events.run_id = runs.run_id AND type = 'timed' AND json_valid(body)
        AND json_type(body, '$.timing.time_us') IN ('real', 'integer')
    );
    """,
)


def refuse_newer(connection: sqlite3.Connection, path: object) -> None:
    """Raises :class:`StoreError` for a store written by a newer version, which stays untouched."""
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} has schema {version}; this cutegen-lab reads up to {len(MIGRATIONS)}",
            Hint(Advice.UPGRADE),
        )


def refuse_foreign(connection: sqlite3.Connection, path: object) -> None:
    """Raises :class:`StoreError` for a file with views or triggers other than those of a store: SQLite would run them,
    and the file may be from someone else, as in a cloned folder."""
    ours = {" ".join(text.split()) for text in _statements(_APPEND_ONLY)}
    acting = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('view', 'trigger')")
    for name, text in acting:
        if " ".join(f"{text};".split()) not in ours:
            raise StoreError(f"{path} is no store: it has {one_line(str(name))[:80]!r}", "Do not trust it.")


def migrate(connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Brings ``connection`` to the newest schema; each migration is one transaction that also sets the version."""
    while (version := _version(connection)) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:  # otherwise another process has migrated first
                for statement in _statements(migrations[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite itself ends it if the disk is full
                connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    """Statements of a script, run inside the caller's transaction (``executescript`` would commit first)."""
    statements, text = [], ""
    for part in script.split(";"):
        text += part + ";"
        if sqlite3.complete_statement(text) and text.strip(" \n;"):
            statements.append(text)
            text = ""
    return statements
