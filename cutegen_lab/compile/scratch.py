"""Folders that are removed with the process that made them, or by a later process if that one was killed."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_LOCK = ".owner"
_UNLOCKED_SECONDS = 3600.0  # age from which a folder without a lock counts as abandoned


class OwnedFolder:
    """A new folder in ``parent``, locked while this process lives. Folders of killed processes with the same ``prefix``
    are removed first."""

    def __init__(self, parent: Path, prefix: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(parent, prefix)
        self.path = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        unlocked = self.path / f"{_LOCK}.new"
        self._lock = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unlocked.rename(self.path / _LOCK)

    def close(self) -> None:
        if self._lock >= 0:
            remove_tree(self.path)
            os.close(self._lock)
            self._lock = -1


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Removes this user's folders whose lock nobody holds, and old folders without a lock."""
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.getuid():
                continue
            if _is_abandoned(folder):
                remove_tree(folder)


def _is_abandoned(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > _UNLOCKED_SECONDS
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(lock)


def remove_tree(top: Path) -> None:
    """Removes ``top`` and everything in it as far as permitted; never raises.

    Without recursion or long paths, however deep the tree: folders are moved up into ``top`` before they are emptied.
    """
    moved = (top / f".{secrets.token_hex(8)}-{number}" for number in itertools.count())
    folders = [top]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):
            folder.chmod(0o700)
            folders += _without_files(folder, None if folder == top else moved)
            if folder != top:
                folder.rmdir()
    with contextlib.suppress(OSError):
        top.rmdir()


def _without_files(folder: Path, moved: Iterator[Path] | None) -> list[Path]:
    """Deletes the files in ``folder`` and returns the paths of its subfolders, each moved to the next path of
    ``moved``, if given."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                path = Path(entry.path)
                if not entry.is_dir(follow_symlinks=False):
                    path.unlink()
                elif moved is None:
                    found.append(path)
                else:
                    path.chmod(0o700)  # a folder without write permission cannot be moved
                    found.append(path.rename(next(moved)))
    return found
