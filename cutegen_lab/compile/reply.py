"""Validates what comes out of the cage, which is untrusted, before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cutegen_lab.compile.plan import Recording
from cutegen_lab.compile.wire import RECORDINGS
from cutegen_lab.core.artifact import TracedLayout
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Diagnostic, Verdict

MAX_TEXT = 20_000
_FAILURES = {
    Verdict.COMPILE_ERROR, Verdict.CONTRACT, Verdict.COMPILE_LIMIT, Verdict.HOST_READS_DATA, Verdict.COMPILE_CRASH,
}  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """A successful build: raw data, but of the right types."""

    cubin: bytes
    """Machine code."""
    ptx: str
    """PTX text."""
    workspace: tuple[TensorSpec, ...]
    """Scratch tensors that the candidate declares."""
    recordings: tuple[Recording, ...]
    """Recordings of the launcher."""
    seconds: float
    """Seconds that compiling took."""


@dataclass(frozen=True)
class Failed:
    """A build that failed."""

    verdict: Verdict
    """Verdict of the candidate."""
    reason: str
    """Why, in one line."""
    diagnostics: tuple[Diagnostic, ...]
    """Messages with lines of the candidate's text."""
    ruled_out: bool = False
    """Whether the candidate's own ``constraints`` refused the config."""


def read_reply(data: dict[str, Any], parts: Sequence[bytes]) -> Compiled | Failed:
    """A build's result. Raises ValueError for anything that our own child code would not send."""
    try:
        return _failed(data["failed"]) if "failed" in data else _compiled(data, *parts)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"a reply of the wrong shape ({type(error).__name__}: {str(error)[:80]})") from None


def read_cubins(data: dict[str, Any], parts: Sequence[bytes], count: int) -> list[bytes]:
    """Cubins from the child that assembles. Raises ValueError for any other answer, with its reason if it has one."""
    try:
        if "failed" in data:
            raise ValueError(_failed(data["failed"]).reason)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a reply of the wrong shape ({type(error).__name__})") from None
    if len(parts) != count:
        raise ValueError(f"a reply with {len(parts)} cubins, not {count}")
    return list(parts)


def read_layouts(data: dict[str, Any]) -> tuple[TracedLayout, ...] | Failed:
    """Layouts of a candidate. Raises ValueError for anything that our own child code would not send."""
    try:
        if "failed" in data:
            return _failed(data["failed"])
        return tuple(TracedLayout(_integer(line), _text(kind)) for line, kind in data["layouts"])
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"a reply of the wrong shape ({type(error).__name__}: {str(error)[:80]})") from None


def _compiled(data: dict[str, Any], cubin: bytes, ptx: bytes, *logs: bytes) -> Compiled:
    """Raises TypeError for missing parts, ValueError for parts that are not text."""
    recordings = tuple(
        Recording(tuple(_integer(b) for b in r["bases"]), _integer(r["error"]), log.decode())
        for r, log in zip(data["recordings"], logs, strict=True)
    )
    if len(recordings) != RECORDINGS or len({len(r.bases) for r in recordings}) != 1:
        raise ValueError(f"a reply without its {RECORDINGS} recordings")
    workspace = tuple(
        TensorSpec(_text(w["name"]), DType(w["dtype"]), tuple(_integer(s) for s in w["shape"]))
        for w in data["workspace"]
    )
    if any(size < 0 for w in workspace for size in w.shape):
        raise ValueError("a workspace tensor of negative size")
    return Compiled(
        cubin=cubin,
        ptx=ptx.decode(),
        workspace=workspace,
        recordings=recordings,
        seconds=float(data["seconds"]),
    )


def _failed(data: dict[str, Any]) -> Failed:
    verdict = Verdict(data["verdict"])
    if verdict not in _FAILURES:
        raise ValueError(f"a reply with the verdict {verdict.value!r}, which a child may not give")
    diagnostics = tuple(_diagnostic(d) for d in data["diagnostics"][:50])
    return Failed(verdict, _text(data["reason"]), diagnostics, data.get("ruled_out") is True)


def _diagnostic(data: dict[str, Any]) -> Diagnostic:
    severity = data["severity"]
    if severity not in ("error", "warning", "note"):
        raise ValueError(f"a diagnostic of severity {str(severity)[:20]!r}")
    texts = {key: _text(data[key]) for key in ("code", "message", "excerpt", "note", "suggestion")}
    return Diagnostic(severity=severity, line=_integer(data["line"]), **texts)


def _text(value: Any, limit: int = MAX_TEXT) -> str:
    if not isinstance(value, str) or len(value) > limit:
        raise ValueError(f"a reply without text of at most {limit} characters where it is required")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 1 << 62:
        raise ValueError("a reply without an integer where it is required")
    return value
