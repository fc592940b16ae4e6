"""Memory that a container leaves."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from cutegen_lab.core import machine_memory
from cutegen_lab.core.machine_memory import available_bytes, total_bytes

GIB = 1 << 30


def group(folder: Path, limit: str, used: int, cache: int = 0, old: bool = False) -> None:
    """What Linux shows of a group of processes, by version 2 or, if ``old``, 1."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(f"{limit}\n")
    (folder / ("memory.usage_in_bytes" if old else "memory.current")).write_text(f"{used}\n")
    name = "total_inactive_file" if old else "inactive_file"
    (folder / "memory.stat").write_text(f"anon 5\n{name} {cache}\n")


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with room for all of it."""

    class Large:
        total, available = 64 * GIB, 40 * GIB

    monkeypatch.setattr(psutil, "virtual_memory", Large)


def test_a_machine_without_limits(tmp_path: Path) -> None:
    group(tmp_path, "max", 3 * GIB)
    assert (total_bytes(tmp_path), available_bytes(tmp_path)) == (64 * GIB, 40 * GIB)
    assert available_bytes(tmp_path / "none") == 40 * GIB


@pytest.mark.parametrize("old", [False, True])
def test_what_a_container_leaves(tmp_path: Path, old: bool) -> None:
    """Its cache of files is given back when memory is short."""
    group(tmp_path / "memory" if old else tmp_path, str(2 * GIB), 3 * GIB // 2, GIB, old=old)
    assert total_bytes(tmp_path) == 2 * GIB
    assert available_bytes(tmp_path) == 3 * GIB // 2


def test_the_least_of_groups_within_each_other_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "said"
    said.write_text("0::/user.slice/job\n")
    real = Path
    monkeypatch.setattr(machine_memory, "Path", lambda name: said if name == "/proc/self/cgroup" else real(name))
    group(tmp_path / "user.slice", str(4 * GIB), 3 * GIB)
    group(tmp_path / "user.slice" / "job", str(8 * GIB), GIB)
    group(tmp_path / "user.slice" / "other", str(GIB), GIB)
    assert (total_bytes(tmp_path), available_bytes(tmp_path)) == (4 * GIB, GIB)


def test_more_than_the_limit_is_nothing_left(tmp_path: Path) -> None:
    group(tmp_path, str(GIB), 2 * GIB)
    assert available_bytes(tmp_path) == 0
