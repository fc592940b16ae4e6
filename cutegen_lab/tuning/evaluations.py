"""Evaluations on disk as append-only lines of JSON (Kernel Tuner's cache, as JSON Lines).

An evaluation belongs to a source, a config, a workload, an arch, a device and its driver. A file truncated by a crash
is read up to there; a damaged line is skipped and counted.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import StoreError
from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.problem import Problem

SCHEMA = "cutegen-evaluation-1"
Kind = Literal["measured", "predicted"]


@dataclass(frozen=True)
class Place:
    """Conditions under which evaluations are comparable."""

    source_sha256: str
    """Key of source and problem, by :func:`source_key`."""
    arch: str
    """Target architecture."""
    device: str
    """Device that was timed or modelled."""
    driver: str
    """Versions of driver and DSL, or of the model."""
    kind: Kind
    """"measured" or "predicted"."""


@dataclass(frozen=True)
class Evaluation:
    """Result of one config on one workload."""

    config: Config
    """The config."""
    workload: str
    """Signature of the workload."""
    time_us: float | None
    """Median of the samples in microseconds; None if it failed."""
    samples: int = 1
    """Number of samples."""
    failure: str = ""
    """Verdict, if it failed."""
    reason: str = ""
    """Why it failed, in one line."""
    ruled_out: bool = False
    """Whether the config failed without reaching the device."""
    at: float = field(default_factory=time.time)
    """When it was made, in Unix seconds."""

    def __post_init__(self) -> None:
        if (self.time_us is None) != bool(self.failure):
            raise ValueError("an evaluation has either a time or a failure")
        if self.time_us is not None and not (math.isfinite(self.time_us) and self.time_us > 0):
            raise ValueError(f"a time must be positive and finite, not {self.time_us} µs")


def source_key(source: str, problem: Problem) -> str:
    """Hash of a kernel's text and the problem's precision: with TF32 allowed, a config that failed may pass."""
    return sha256(f"{source}\n# TF32 allowed\n" if problem.tf32 else source)


def evaluation_key(place: Place, config: Config, workload: str) -> str:
    return sha256(canonical_json([asdict(place), dict(config), workload]))


class Evaluations:
    """Evaluations of one ``place``, in a file that other places share. Thread-safe. A line is in the file before
    :meth:`add` returns, so a killed process loses none (a power cut may); the latest line of a key is valid. Raises
    StoreError for a file that cannot be used."""

    def __init__(self, path: Path, place: Place) -> None:
        self.path, self.place = path, place
        self.damaged = 0
        self._lock = threading.Lock()
        self._found: dict[str, Evaluation] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                file.seek(0)
                self._read(file.read())
        except OSError as error:
            raise StoreError(f"cannot use {path}: {error.strerror}", "Choose a writable place.") from error

    def get(self, config: Config, workload: str) -> Evaluation | None:
        with self._lock:
            return self._found.get(evaluation_key(self.place, config, workload))

    def __iter__(self) -> Iterator[Evaluation]:
        with self._lock:
            return iter(list(self._found.values()))

    def add(self, found: Evaluation) -> None:
        name = evaluation_key(self.place, found.config, found.workload)
        line = canonical_json({"schema": SCHEMA, "key": name, **asdict(self.place), **_plain(found)}) + "\n"
        with self._lock:
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
                try:
                    os.write(fd, (b"" if _ended(fd) else b"\n") + line.encode())
                finally:
                    os.close(fd)
            except OSError as error:
                raise StoreError(f"cannot write {self.path}: {error.strerror}", "Choose a writable place.") from error
            self._found[name] = found

    def _read(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        self.damaged += bool(rest.strip()) and not self._take(rest)
        for line in lines:
            self.damaged += bool(line.strip()) and not self._take(line)

    def _take(self, line: bytes) -> bool:
        parsed = _parsed(line)
        if parsed is not None and parsed[0] == self.place:
            self._found[evaluation_key(self.place, parsed[1].config, parsed[1].workload)] = parsed[1]
        return parsed is not None


def recorded(path: Path, source_sha256: str) -> dict[Place, list[Evaluation]]:
    """Evaluations of one source in a file, by place; only the latest of each config and workload."""
    found: dict[Place, dict[str, Evaluation]] = {}
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        parsed = _parsed(line)
        if parsed is not None and parsed[0].source_sha256 == source_sha256:
            place, one = parsed
            found.setdefault(place, {})[evaluation_key(place, one.config, one.workload)] = one
    return {place: list(of.values()) for place, of in found.items()}


def _parsed(line: bytes) -> tuple[Place, Evaluation] | None:
    """The evaluation of a line; None if it is damaged, empty or from another version."""
    try:
        data: dict[str, Any] = json.loads(line)
        place = Place(*(data[name] for name in Place.__dataclass_fields__))
        found = Evaluation(**{name: data[name] for name in Evaluation.__dataclass_fields__})
        sound = data["schema"] == SCHEMA and data["key"] == evaluation_key(place, found.config, found.workload)
    except (ValueError, KeyError, TypeError):
        return None
    return (place, found) if sound else None


def _plain(found: Evaluation) -> Mapping[str, Any]:
    return {**asdict(found), "config": dict(found.config)}


def _ended(fd: int) -> bool:
    """Whether the file's last line is complete."""
    size = os.fstat(fd).st_size
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"
