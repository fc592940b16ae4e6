"""Writes and reads whole runs as files. A run from a file is only shown; its kernels must be judged again here."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.protocols import Store
from cutegen_lab.core.run import Compiled, Event, Generated, Imported, RunStarted, RunState, StoredEvent
from cutegen_lab.loop import fold

if TYPE_CHECKING:
    from cutegen_lab.stores.archive import Archived

_RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_CANDIDATE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def run_as_file(store: Store, state: RunState, events: Sequence[StoredEvent]) -> bytes:
    """A run as the contents of a ``.cutegen`` file, artifacts included. Raises InputError for a run that was itself
    read from one."""
    from cutegen_lab.stores.archive import archived_bytes

    if state.imported:
        raise InputError(f"run {state.run_id} was read from {state.imported}", "Send that file.")
    artifacts = {built.artifact_sha256: store.get_artifact(built.artifact_sha256) for built in state.compiled.values()}
    return archived_bytes(state, events, artifacts)


def read_run(store: Store, path: Path) -> str:
    """Reads the run in the file ``path`` into the store and returns its id: that in the file if it is free, otherwise
    one derived from it. The run ends with an :class:`~cutegen_lab.core.run.Imported` event, after which nothing of it
    is run. A file that was read before gives the same run again. Raises InputError for a file that is not an archived
    run."""
    from cutegen_lab.stores.archive import read_archive

    archived = read_archive(path)
    first = _checked_start(archived, path)
    alike = [run.run_id for run in store.runs() if run.run_id.startswith(first.run_id)]
    for run_id in alike:
        if any(isinstance(e.event, Imported) and e.event.sha256 == archived.sha256 for e in store.events(run_id)):
            return run_id
    events, state = _checked_run(archived, first, path, alike)
    for artifact in archived.artifacts.values():
        store.put_artifact(artifact, _prefix(archived))
    store.insert(events, state)
    return state.run_id


def look_into(path: Path) -> tuple[list[StoredEvent], RunState]:
    """The run in ``path``, read as by :func:`read_run`, without storing it. Raises InputError."""
    from cutegen_lab.stores.archive import read_archive

    archived = read_archive(path)
    return _checked_run(archived, _checked_start(archived, path), path, ())


def _checked_run(
    archived: Archived, first: RunStarted, path: Path, taken: Sequence[str]
) -> tuple[list[StoredEvent], RunState]:
    """The run's events, with an id that is not ``taken`` and an Imported event, and the state they lead to. Raises
    InputError if the events do not make a run, and if artifacts are missing."""
    last = Imported(one_line(path.name), archived.sha256)
    events = [*_renamed(archived, first, taken), StoredEvent(len(archived.events) + 1, time.time(), last)]
    try:
        state = fold(stored.event for stored in events)
    except (InputError, KeyError, ValueError) as error:
        raise InputError(f"{path} is no run: {one_line(str(error))}", "Ask for the file again.") from None
    missing = [c.artifact_sha256 for c in state.compiled.values() if _own_hash(c) not in archived.artifacts]
    if missing:
        raise InputError(f"{path} lacks the artifact of a candidate", "Ask for the file again.")
    return events, state


def _checked_start(archived: Archived, path: Path) -> RunStarted:
    """The first event. Raises InputError if it does not start a run, and for ids that this package does not generate,
    since ids become parts of file names."""
    for event in (stored.event for stored in archived.events):
        if isinstance(event, RunStarted) and not _RUN_ID.fullmatch(event.run_id):
            raise InputError(
                f"{path} names its run {one_line(event.run_id)[:80]!r}, not a valid id", "Do not trust it."
            )
        if isinstance(event, Generated) and not _CANDIDATE_ID.fullmatch(event.candidate.id):
            raise InputError(
                f"{path} names a candidate {one_line(event.candidate.id)[:80]!r}, not a valid id", "Do not trust it."
            )
    first = archived.events[0].event if archived.events else None
    if not isinstance(first, RunStarted):
        raise InputError("the file's events do not begin with the start of a run", "Ask for the file again.")
    return first


def _renamed(archived: Archived, first: RunStarted, taken: Sequence[str]) -> list[StoredEvent]:
    """The events with an id that is not ``taken``, and with a prefix on the artifacts' hashes, which cover only machine
    code: artifacts compiled here may have the same."""
    run_id = first.run_id
    while run_id in taken:
        run_id = f"{first.run_id}-{secrets.token_hex(2)}"

    def renamed(event: Event) -> Event:
        if isinstance(event, RunStarted):
            return replace(event, run_id=run_id)
        if isinstance(event, Imported):
            raise InputError("the file's run was itself read from a file", "Ask whoever ran it for their file.")
        if isinstance(event, Compiled):
            return replace(event, artifact_sha256=_prefix(archived) + event.artifact_sha256)
        return event

    return [replace(stored, event=renamed(stored.event)) for stored in archived.events]


def _prefix(archived: Archived) -> str:
    return f"imported {archived.sha256} "


def _own_hash(compiled: Compiled) -> str:
    return compiled.artifact_sha256.rpartition(" ")[2]
