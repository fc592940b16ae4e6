"""Builds and permanent failures on disk, by content hash. Writes are atomic; an unreadable entry counts as missing."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cutegen_lab.core.artifact import Build, CompileFailure
from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.verdict import Diagnostic, Verdict

# Increase it when the form of entries, the contents of builds, or what is refused changes.
ENTRY_VERSION = 11
# Verdicts that depend on the text alone. Timeouts, crashes and limits depend on the machine.
LASTING = {Verdict.COMPILE_ERROR, Verdict.CONTRACT, Verdict.HOST_READS_DATA, Verdict.INVALID_PLAN}
_OF_THE_MACHINE = {"OSError", "PermissionError", "FileNotFoundError", "ImportError", "ModuleNotFoundError"}
_PRUNE_EVERY = 64


class BuildCache:
    """Holds at most about ``max_bytes``; the least recently used entries are deleted first."""

    def __init__(self, directory: Path, max_bytes: int = 1 << 30) -> None:
        self._directory, self._max_bytes = directory, max_bytes
        self._lock = threading.Lock()
        self._writes = 0

    @staticmethod
    def key(source: str, config: Mapping[str, Any], arch: str, dsl_version: str, signature: str) -> str:
        """Hash of everything that a build depends on."""
        return sha256(canonical_json([ENTRY_VERSION, source, dict(config), arch, dsl_version, signature]))

    def get(self, key: str) -> tuple[Build | CompileFailure, tuple[str, ...]] | None:
        """A build or failure and the isolation it was made under; None without a valid entry."""
        path = self._path(key)
        try:
            data = json.loads(path.read_bytes())
            if data["entry_version"] != ENTRY_VERSION or data["key"] != key:
                return None
            isolation = tuple(str(name) for name in data["isolation"])
            value = Build.from_dict(data["build"]) if "build" in data else _failure(data["failure"], isolation)
            os.utime(path)
            return value, isolation
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, CutegenError):
            return None

    def put(self, key: str, value: Build | CompileFailure, isolation: tuple[str, ...]) -> None:
        """Stores a build or a permanent failure. If the disk is full or read-only, nothing is stored and nothing is
        raised."""
        data: dict[str, Any] = {"entry_version": ENTRY_VERSION, "key": key, "isolation": list(isolation)}
        if isinstance(value, Build):
            data["build"] = value.to_dict()
        elif value.verdict in LASTING and not any(d.code in _OF_THE_MACHINE for d in value.diagnostics):
            data["failure"] = {
                "verdict": value.verdict.value,
                "reason": value.reason,
                "diagnostics": [asdict(d) for d in value.diagnostics],
                "ruled_out": value.ruled_out,
            }
        else:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as file:
                json.dump(data, file, separators=(",", ":"))
            Path(file.name).replace(path)
        except OSError:
            return
        with self._lock:
            self._writes += 1
            if self._writes % _PRUNE_EVERY == 1:
                self.prune()

    def prune(self) -> None:
        """Deletes the least recently used entries until the rest fits."""
        entries = []
        for path in self._directory.glob("*/*.json"):
            try:
                stat = path.stat()
            except OSError:
                continue
            entries.append((stat.st_mtime_ns, stat.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self._max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / f"{key}.json"


def _failure(data: Mapping[str, Any], isolation: tuple[str, ...]) -> CompileFailure:
    return CompileFailure(
        Verdict(data["verdict"]), data["reason"], tuple(Diagnostic(**d) for d in data["diagnostics"]), isolation,
        bool(data.get("ruled_out")),
    )  # fmt: skip
