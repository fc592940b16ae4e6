"""The store's tables, and the migration of older files. ``PRAGMA user_version`` counts the migrations applied."""

from __future__ import annotations

import sqlite3

from cutegen_lab.core.errors import StoreError
from cutegen_lab.core.hints import Advice, Hint

_APPEND_ONLY = "".join(
    f"""
    CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;"""
    for verb in ("UPDATE", "DELETE")
)

MIGRATIONS: tuple[str, ...] = (
    # 1: runs, their events, artifacts by content
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
)


def refuse_newer(connection: sqlite3.Connection, path: object) -> None:
    """Raises :class:`StoreError` for a store written by a newer version, which stays untouched."""
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} has schema {version}; this cutegen-lab reads up to {len(MIGRATIONS)}",
            Hint(Advice.UPGRADE),
        )


def migrate(connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Brings ``connection`` to the newest schema; each migration is one transaction that also sets the version."""
    while (version := _version(connection)) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:  # else another process was first
                for statement in _statements(migrations[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite ends it itself where the disk is full
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
