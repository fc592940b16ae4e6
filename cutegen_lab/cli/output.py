"""Output. With ``--json`` stdout gets one object and nothing else, whatever a reference prints.

Control characters in texts of candidates, models and servers are escaped.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.plain_text import one_line, plain
from cutegen_lab.views.hints import COMMAND_LINE, advised


class Output:
    """A context manager. With ``json``, file descriptor 1 is redirected to stderr until :meth:`result` writes the
    object."""

    def __init__(self, json: bool) -> None:
        self.json = json
        self._stdout: int | None = None
        self._done = False

    def __enter__(self) -> Output:
        if self.json:
            sys.stdout.flush()
            self._stdout = os.dup(1)
            os.dup2(2, 1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._stdout is not None:
            sys.stdout.flush()
            os.dup2(self._stdout, 1)
            os.close(self._stdout)
            self._stdout = None

    def line(self, text: str = "") -> None:
        """Prints a line to stdout, or nothing with ``--json``."""
        if not self.json:
            print(plain(text), flush=True)

    def result(self, data: Mapping[str, Any]) -> None:
        """Writes the object, once. It always has ``verdict`` and ``reason``."""
        if self._stdout is not None and not self._done:
            self._done = True
            whole = {"verdict": None, "reason": "", **data}
            os.write(self._stdout, (json.dumps(_finite(whole), allow_nan=False) + "\n").encode())

    def error(self, error: CutegenError) -> None:
        """One line on stderr; with ``--json`` also the object."""
        advised(error, COMMAND_LINE)
        note(f"cutegen: {one_line(str(error))}")
        self.result({"reason": error.message, "error": str(error), "action": error.action})

    def abandon(self) -> None:
        """stdout has no reader: discards what the interpreter flushes at exit."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def note(text: str, end: str = "\n") -> None:
    """Prints a note to stderr."""
    print(plain(text), end=end, file=sys.stderr, flush=True)


class PlainFormatter(logging.Formatter):
    """Formatter of log records that escapes control characters, since tracebacks may quote untrusted text."""

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record))


def _finite(value: Any) -> Any:
    """Replaces infinities and NaN, which JSON lacks, by the strings "inf", "-inf" and "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
