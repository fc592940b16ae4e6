"""Where stores are: in the work directories that notebooks under the server's root use. A name in a request cannot lead
elsewhere."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line

DATABASE = "lab.db"
MOST_FOLDERS, MOST_DEPTH = 2000, 5
"""Limits of the search for stores: number of folders, and depth below the root."""
_FRESH_SECONDS = 1.0
_SHARE = 0.02  # maximum fraction of the time that is spent on searching
_LEFT_OUT = {"node_modules", "site-packages", "__pycache__"}


@dataclass(frozen=True)
class Place:
    """A work directory with a store. ``name``: its path from the root, or an absolute one that CUTEGEN_HOME names;
    ``folder``: path from the root of the folder that it is in; ``problem``: why it is not opened, if so."""

    name: str
    path: Path
    folder: str
    problem: str = ""


class Places:
    """The work directories named ``workdir`` (as CUTEGEN_HOME or the default says) in folders under ``root``; only that
    one if ``workdir`` is an absolute path. Thread-safe."""

    def __init__(self, root: Path, workdir: Path) -> None:
        self.root = root.resolve()
        self._workdir = workdir
        self._lock = threading.Lock()
        self._found: list[Place] = []
        self._fresh_until = float("-inf")

    def all(self, folder: str = "") -> list[Place]:
        """Every place below ``folder``, nearest to the root first. Raises InputError for a folder that is not there."""
        with self._lock:
            begun = time.monotonic()
            if begun > self._fresh_until or not all(_is_store(each.path) for each in self._found):
                self._found = self._search()
                took = time.monotonic() - begun
                self._fresh_until = begun + max(_FRESH_SECONDS, took / _SHARE)
            found = self._found
        if not folder or self._workdir.is_absolute():
            return found
        within = self.inside(folder).relative_to(self.root)
        return [each for each in found if PurePosixPath(each.folder).is_relative_to(within.as_posix())]

    def named(self, name: str) -> Place:
        """The store named ``name``. Raises InputError if there is none."""
        if self._workdir.is_absolute():
            place = Place(str(self._workdir), self._workdir, "")
            found = place if name == place.name else None
        else:
            found = self._in_folder(self.inside(name))
        if found is None or not _is_store(found.path):
            raise InputError(f"there is no store {one_line(name)[:200]!r}", "Refresh the list of runs.")
        return found

    def inside(self, name: str) -> Path:
        """The file or folder of that path under the root. Raises InputError for one that is not there, or is not under
        the root: an absolute path, ``..``, a link that leads out."""
        try:
            if not name.startswith("/") and ".." not in PurePosixPath(name).parts:
                path = (self.root / name).resolve(strict=True)
                if path.is_relative_to(self.root):
                    return path
        except (OSError, ValueError, RuntimeError):  # it does not exist, contains a NUL, or is a loop of links
            pass
        raise InputError(f"there is no {one_line(name)[:200]!r} under the server's folder", "Check the path.")

    def _in_folder(self, path: Path) -> Place | None:
        name = path.relative_to(self.root)
        depth = len(self._workdir.parts)
        if len(name.parts) < depth or name.parts[-depth:] != self._workdir.parts:
            return None
        return Place(name.as_posix(), path, PurePosixPath(*name.parts[:-depth]).as_posix())

    def _seen(self, path: Path) -> list[Place]:
        """The store that the search found at ``path``, as a list. Empty for a link to a store under the root, which is
        found there; a link out of the root is a place with a problem."""
        there = path.resolve()
        if there == path:
            place = self._in_folder(path)
            return [place] if place else []
        if there.is_relative_to(self.root):
            return []
        name = path.relative_to(self.root)
        problem = f"it is a link out of the server's folder: set CUTEGEN_HOME to {there} to use it"
        return [Place(name.as_posix(), path, name.parent.as_posix(), problem)]

    def _search(self) -> list[Place]:
        if self._workdir.is_absolute():
            return [Place(str(self._workdir), self._workdir, "")] if _is_store(self._workdir) else []
        found, waiting = [], deque([(self.root, 0)])
        for _ in range(MOST_FOLDERS):
            if not waiting:
                break
            folder, depth = waiting.popleft()
            path = folder / self._workdir
            if _is_store(path):
                found += self._seen(path)
            if depth < MOST_DEPTH:
                waiting.extend((below, depth + 1) for below in _folders_in(folder))
        return found


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                Path(entry.path)
                for entry in entries
                if not entry.name.startswith(".")
                and entry.name not in _LEFT_OUT
                and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []


def _is_store(path: Path) -> bool:
    """Whether ``path`` has a database that is a regular file, and so are SQLite's files next to it, if any."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        try:
            mode = (path / f"{DATABASE}{suffix}").lstat().st_mode
        except (OSError, ValueError):
            if not suffix:
                return False
        else:
            if not stat.S_ISREG(mode):
                return False
    return True
