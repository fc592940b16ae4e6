"""Folders of scratch go whatever is in them, and those of killed processes when the next one begins."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutegen_lab.compile.scratch import OwnedFolder, remove_abandoned, remove_tree
from cutegen_lab.compile.usage import holds

OWNER = """
import sys, time
from pathlib import Path
from cutegen_lab.compile.scratch import OwnedFolder
print(OwnedFolder(Path(sys.argv[1]), "cutegen-cage-").path, flush=True)
time.sleep(600)
"""


def nest(folder: Path, depth: int) -> None:
    """Folders in each other, by a path that no call would take whole."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("nested", dir_fd=at)
        below = os.open("nested", os.O_RDONLY, dir_fd=at)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(at)
        at = below
    os.close(at)


def test_a_deep_nest_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "build"
    top.mkdir()
    nest(top, 3000)
    remove_tree(top)
    assert not list(tmp_path.iterdir())


def test_what_is_outside_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("the user's")
    top = tmp_path / "build"
    (top / "deep" / "deeper").mkdir(parents=True)
    (top / "link").symlink_to(tmp_path / "mine")
    (top / "deep" / "deeper" / "link").symlink_to(tmp_path / "mine")
    (top / "deep" / "closed").mkdir()
    (top / "deep" / "closed").chmod(0)
    remove_tree(top)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "file").read_text() == "the user's"
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o755


def test_removing_never_raises(tmp_path: Path) -> None:
    remove_tree(tmp_path / "not there")
    (tmp_path / "file").write_text("")
    remove_tree(tmp_path / "file")


@pytest.fixture
def owner(tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)  # noqa: S603


def test_a_killed_process_leaves_nothing_for_long(tmp_path: Path, owner: subprocess.Popen[str]) -> None:
    assert owner.stdout is not None
    theirs = Path(owner.stdout.readline().strip())
    (theirs / "build-1").mkdir()
    assert theirs.is_dir()
    mine = OwnedFolder(tmp_path, "cutegen-cage-")
    assert theirs.is_dir()  # its owner lives
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    other = OwnedFolder(tmp_path, "cutegen-cage-")
    assert not theirs.exists() and mine.path.is_dir() and other.path.is_dir()
    mine.close()
    other.close()
    assert not list(tmp_path.iterdir())


def test_folders_that_nobody_locks_go_when_they_are_old(tmp_path: Path) -> None:
    """As those of before there were locks; one that is new may be about to be locked."""
    for name in ("cutegen-cage-new", "cutegen-cage-old", "another-old"):
        (tmp_path / name).mkdir()
        if name.endswith("old"):
            os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    (tmp_path / "cutegen-cage-link").symlink_to(tmp_path / "another-old")
    remove_abandoned(tmp_path, "cutegen-cage-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another-old", "cutegen-cage-link", "cutegen-cage-new"]


def test_what_a_build_wrote_is_counted(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).write_bytes(bytes(1000))
    blocks = max(1000, (tmp_path / "0").stat().st_blocks * 512)
    assert holds(str(tmp_path), 10 * blocks, 10)
    assert not holds(str(tmp_path), 10 * blocks - 1, 10)
    assert not holds(str(tmp_path), 10 * blocks, 9)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    assert not holds(str(tmp_path), 1 << 29, 100)
