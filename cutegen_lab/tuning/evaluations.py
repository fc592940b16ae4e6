"""What was evaluated, kept as lines of JSON that are only ever added to (Kernel Tuner's cache, as JSON Lines).

An evaluation belongs to a source, a config, a workload, an arch, a device and its driver. A file that was cut short by
a crash is read up to there, and a line that is damaged is left out and counted.
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
    """Where evaluations are comparable. ``source_sha256`` is a :func:`source_key`. ``kind`` says whether times are a
    clock's or a model's; ``driver`` names the driver's version, or the model's."""

    source_sha256: str
    arch: str
    device: str
    driver: str
    kind: Kind


@dataclass(frozen=True)
class Evaluation:
    """One config on one workload (by its signature): ``time_us`` is the median of ``samples``, or None and ``failure``
    the verdict. ``ruled_out`` failures never reached the device."""

    config: Config
    workload: str
    time_us: float | None
    samples: int = 1
    failure: str = ""
    reason: str = ""
    ruled_out: bool = False
    at: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        if (self.time_us is None) != bool(self.failure):
            raise ValueError("an evaluation has either a time or a failure")
        if self.time_us is not None and not (math.isfinite(self.time_us) and self.time_us > 0):
            raise ValueError(f"a time of {self.time_us} µs")


def source_key(source: str, problem: Problem) -> str:
    """Of a kernel's text judged as ``problem`` asks: with TF32 allowed, what failed before may pass."""
    return sha256(f"{source}\n# TF32 allowed\n" if problem.tf32 else source)


def evaluation_key(place: Place, config: Config, workload: str) -> str:
    return sha256(canonical_json([asdict(place), dict(config), workload]))


class Evaluations:
    """The evaluations of one ``place`` in one file, which other places share. Thread-safe; a line is in
    the file before :meth:`add` returns, so that a killed process loses none (what a power cut takes is timed again),
    and the latest line of a key holds. Raises StoreError for a file that cannot be used."""

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
    """What a file holds of one source, place by place; of one config and workload only the latest."""
    found: dict[Place, dict[str, Evaluation]] = {}
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        parsed = _parsed(line)
        if parsed is not None and parsed[0].source_sha256 == source_sha256:
            place, one = parsed
            found.setdefault(place, {})[evaluation_key(place, one.config, one.workload)] = one
    return {place: list(of.values()) for place, of in found.items()}


def _parsed(line: bytes) -> tuple[Place, Evaluation] | None:
    """None for a line that is damaged, empty or another version's."""
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
    """Whether the file's last line was written to its end."""
    size = os.fstat(fd).st_size
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"
