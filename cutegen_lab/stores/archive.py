"""A run as one ``.cutegen`` file: a zip of its events, its artifacts and its texts, with checksums.

Reading such a file runs none of its code and writes no file under a name that it contains. Checksums detect damage, not
who wrote the file, so its verdicts are not trusted.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.run import RunState, StoredEvent
from cutegen_lab.stores.codec import event_from_json, event_to_json

FORMAT, VERSION = "cutegen-run", 1
MOST_BYTES = 256 << 20
"""Maximum size in bytes of all members together, and of the file."""
MOST_MEMBERS = 10_000
"""Maximum number of members."""

_MANIFEST, _EVENTS, _PROBLEM = "manifest.json", "events.jsonl", "problem.py"
_MANIFEST_BYTES = 4 << 20
_ARTIFACT = re.compile(r"artifacts/([0-9a-f]{64})\.json")
_KERNEL = re.compile(r"kernels/[A-Za-z0-9_-]{1,64}\.py")
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # not LZMA: it takes as much memory as a file asks for
_EPOCH = (1980, 1, 1, 0, 0, 0)  # date of every member: the same run gives the same bytes
_ASK_AGAIN = "Ask for the file again."


@dataclass(frozen=True)
class Archived:
    """A run read from a file."""

    events: tuple[StoredEvent, ...]
    """Its events, in order."""
    artifacts: Mapping[str, Artifact]
    """Its artifacts by hash."""
    sha256: str
    """Hash of the list of its members and their hashes."""


def archived_bytes(state: RunState, events: Sequence[StoredEvent], artifacts: Mapping[str, Artifact]) -> bytes:
    """A run as the contents of a file. It also has the problem and the kernels as ``.py`` files for people; these are
    not used when the file is read back."""
    members = {
        _EVENTS: "".join(f"{json.dumps([e.seq, e.at])}\t{event_to_json(e.event)}\n" for e in events),
        _PROBLEM: state.problem.source,
        **{f"kernels/{candidate.id}.py": candidate.source for candidate in state.candidates.values()},
        **{f"artifacts/{key}.json": json.dumps(artifact.to_dict()) for key, artifact in sorted(artifacts.items())},
    }
    sums = {name: sha256(text) for name, text in members.items()}
    manifest = {"format": FORMAT, "version": VERSION, "run_id": state.run_id, "sha256": sums}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in {_MANIFEST: json.dumps(manifest, indent=1), **members}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), text.encode(), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def read_archive(path: Path) -> Archived:
    """The run in ``path``. Raises :class:`InputError` that says what is wrong with the file: it does not exist, is no
    archive, is damaged, is too large, or has a newer version."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} is larger than {MOST_BYTES >> 20} MB", "No run is as large as that.")
        with zipfile.ZipFile(path) as archive:
            return _read(archive, str(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", "Check the path.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged, or no archived run: {one_line(str(error))}", _ASK_AGAIN) from None


def _read(archive: zipfile.ZipFile, path: str) -> Archived:
    members = {info.filename: info for info in _admitted(archive, path)}
    if not {_MANIFEST, _EVENTS} <= members.keys():
        raise InputError(f"{path} is no archived run: it has no {_MANIFEST} or no {_EVENTS}", _ASK_AGAIN)
    manifest = _object(_bytes(archive, members[_MANIFEST]), path)
    sums = _checked_manifest(manifest, path)
    if sums.keys() != members.keys() - {_MANIFEST}:
        raise InputError(f"{path} is damaged: its files are not those that its manifest lists", _ASK_AGAIN)

    def text(name: str) -> bytes:
        data = _bytes(archive, members[name])
        if sha256(data) != sums[name]:
            raise InputError(f"{path} is damaged: the checksum of {name} differs", _ASK_AGAIN)
        return data

    for name in members.keys() - {_MANIFEST, _EVENTS}:
        if not _ARTIFACT.fullmatch(name):
            text(name)
    keys = {name: found[1] for name in members if (found := _ARTIFACT.fullmatch(name))}
    artifacts = {key: _artifact(text(name), key, f"{name} of {path}") for name, key in keys.items()}
    events = tuple(_events(text(_EVENTS).decode(), path))
    return Archived(events, artifacts, sha256(json.dumps(sums, sort_keys=True)))


def _admitted(archive: zipfile.ZipFile, path: str) -> Iterator[zipfile.ZipInfo]:
    """The members. Raises InputError unless all names, sizes and compression methods are those of an archived run."""
    infos, seen, total = archive.infolist(), set[str](), 0
    if len(infos) > MOST_MEMBERS:
        raise InputError(f"{path} has {len(infos):,} files; a run has at most {MOST_MEMBERS:,}", _ASK_AGAIN)
    for info in infos:
        name = info.filename
        known = name in (_MANIFEST, _EVENTS, _PROBLEM) or _ARTIFACT.fullmatch(name) or _KERNEL.fullmatch(name)
        if not known or name in seen:
            raise InputError(f"{path} contains a file that no run has: {one_line(name)[:80]!r}", "Do not trust it.")
        if info.flag_bits & 1:
            raise InputError(f"{path} is encrypted", _ASK_AGAIN)
        if info.compress_type not in _PACKED:
            raise InputError(f"{path} has an unsupported compression method ({info.compress_type})", _ASK_AGAIN)
        total += info.file_size
        if total > MOST_BYTES or (name == _MANIFEST and info.file_size > _MANIFEST_BYTES):
            raise InputError(f"{path} would unpack to more than {MOST_BYTES >> 20} MB", "Do not trust it.")
        seen.add(name)
        yield info


def _bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        return file.read(info.file_size)


def _object(data: bytes, path: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path} is damaged: its manifest is no JSON object", _ASK_AGAIN)
    return found


def _checked_manifest(manifest: Mapping[str, Any], path: str) -> Mapping[str, str]:
    """The checksums in a valid manifest, by the name of the member."""
    version, sums = manifest.get("version"), manifest.get("sha256")
    if manifest.get("format") != FORMAT or not isinstance(version, int):
        raise InputError(f"{path} is no archived run: its manifest does not contain the format {FORMAT!r}", _ASK_AGAIN)
    if version > VERSION:
        raise InputError(f"{path} has version {version}; this cutegen-lab reads up to {VERSION}", Hint(Advice.UPGRADE))
    if not isinstance(sums, dict) or not all(isinstance(value, str) for value in sums.values()):
        raise InputError(f"{path} is damaged: its manifest has no checksums", _ASK_AGAIN)
    return sums


def _artifact(data: bytes, key: str, what: str) -> Artifact:
    """The artifact whose hash is ``key``."""
    try:
        artifact = Artifact.from_dict(json.loads(data))
        if artifact.sha256 != key:
            raise ValueError("its hash differs")
        return artifact
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError) as error:
        raise InputError(f"{what} is no artifact: {one_line(str(error))[:120]}", _ASK_AGAIN) from None


def _events(text: str, path: str) -> Iterator[StoredEvent]:
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        try:
            head, _, body = line.partition("\t")
            seq, at = json.loads(head)
            if (seq, type(at), math.isfinite(at)) != (number, float, True):
                raise ValueError("its number or time is wrong")
            yield StoredEvent(seq, at, event_from_json(body))
        except (ValueError, TypeError, OverflowError, RecursionError, StoreError) as error:
            raise InputError(
                f"{path} is damaged, or of another version: event {number}: {one_line(str(error))[:200]}", _ASK_AGAIN
            ) from None
