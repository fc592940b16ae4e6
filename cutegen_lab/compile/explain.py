"""Turns an exception of the DSL or the candidate into one diagnostic. Runs in the cage, where the exception is."""

from __future__ import annotations

import difflib
import re
import traceback
from pathlib import PurePath
from types import ModuleType
from typing import Any

from cutegen_lab.compile.hints import ALIASES, hint_for

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CODE = re.compile(r"error\[([A-Z][A-Z0-9_]+)\]")
_PLACE = re.compile(r"candidate\.py[:\"]+,?\s*(?:line\s+)?(\d+)")
_FIELD = re.compile(r"^\s*=?\s*(note|suggestion|error):\s*(.*)$")
MAX_MESSAGE = 2000


def explain(error: BaseException, path: str, source: str) -> dict[str, Any]:
    """A :class:`Diagnostic` as plain data: code, message without colours, innermost candidate line, note, hint."""
    text = _ANSI.sub("", str(error)).strip()
    fields = _fields(text)
    line = _line(error, path, text)
    code = getattr(error, "code", None) or getattr(error, "error_code", None)
    found = _CODE.search(text)
    code = str(code or (found[1] if found else type(error).__name__))
    message = _message(error, text, fields)
    note = "; ".join(n for n in fields["note"] if n)
    suggestion = " ".join(fields["suggestion"])
    hint = hint_for(text, type(error).__name__)
    if hint:
        if hint.replaces_message:
            note = f"the compiler said: {note}" if note else ""
        suggestion = hint.suggestion
    elif isinstance(error, AttributeError):
        suggestion = _closest(error) or suggestion
    elif isinstance(error, SyntaxError):
        line, suggestion = error.lineno or line, suggestion or "Correct the Python syntax."
    return {
        "severity": "error", "code": code[:100], "message": message[:MAX_MESSAGE], "line": line,
        "excerpt": excerpt(source, line), "note": note[:MAX_MESSAGE], "suggestion": suggestion[:MAX_MESSAGE],
    }  # fmt: skip


def excerpt(source: str, line: int) -> str:
    """The line and two on either side, numbered, the line itself marked."""
    lines = source.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    first, last = max(1, line - 2), min(len(lines), line + 2)
    return "\n".join(f"{'>' if n == line else ' '} {n:4d} | {lines[n - 1][:200]}" for n in range(first, last + 1))


def _message(error: BaseException, text: str, fields: dict[str, list[str]]) -> str:
    inner = fields["error"]
    if inner and "INTERNAL" in text:
        return inner[0]
    own = getattr(error, "message", None)
    message = _ANSI.sub("", str(own)).strip() if isinstance(own, str) and own else text
    return message.splitlines()[0] if message else type(error).__name__


def _fields(text: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {"note": [], "suggestion": [], "error": []}
    current: list[str] | None = None
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match:
            current = fields[match[1]]
            current.append(match[2].strip())
        elif current and line.startswith("      ") and line.strip():
            current[-1] += " " + line.strip()
        else:
            current = None
    return fields


def _line(error: BaseException, path: str, text: str) -> int:
    """Candidate line closest to the error: the line of the exception itself, otherwise the last line that the compiler
    printed, otherwise the innermost frame in the candidate's file; then the same for its cause. 0 if none."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            break
        if _same(getattr(seen, "filename", None), path):
            number = getattr(seen, "line", None) or getattr(seen, "lineno", None)
            if isinstance(number, int):
                return number
        frames = [f.lineno for f in traceback.extract_tb(seen.__traceback__) if _same(f.filename, path)]
        places = [int(n) for n in _PLACE.findall(text)]
        if places:
            return places[-1]
        if frames and frames[-1]:
            return frames[-1]
        seen = seen.__cause__ or seen.__context__
    return 0


def _same(filename: object, path: str) -> bool:
    """Whether two paths have the same file name; folders are ignored, since the DSL changes them when it recompiles
    functions."""
    return isinstance(filename, str) and PurePath(filename).name == PurePath(path).name


def _closest(error: AttributeError) -> str:
    name, owner = error.name, error.obj
    if not name or owner is None:
        return ""
    if name in ALIASES:
        return ALIASES[name]
    label = owner.__name__ if isinstance(owner, ModuleType) else type(owner).__name__
    close = difflib.get_close_matches(name, [n for n in dir(owner) if not n.startswith("_")], n=3, cutoff=0.6)
    return f"{label} has {', '.join(close)}." if close else ""
