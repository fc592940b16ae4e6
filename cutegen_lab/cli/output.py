"""Where words go. With ``--json`` stdout carries one object and nothing else, whatever a reference prints.

Nothing written here acts on a terminal, whatever a candidate, a model or a server wrote.
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
    """Use as a context manager. Under ``json`` file descriptor 1 is stderr's until :meth:`result` writes the object."""

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
        """For people: stdout, or nowhere under ``--json``."""
        if not self.json:
            print(plain(text), flush=True)

    def result(self, data: Mapping[str, Any]) -> None:
        """The object, once. ``verdict`` and ``reason`` are always there."""
        if self._stdout is not None and not self._done:
            self._done = True
            whole = {"verdict": None, "reason": "", **data}
            os.write(self._stdout, (json.dumps(_finite(whole), allow_nan=False) + "\n").encode())

    def error(self, error: CutegenError) -> None:
        """One line on stderr; under ``--json`` also the object."""
        advised(error, COMMAND_LINE)
        note(f"cutegen: {one_line(str(error))}")
        self.result({"reason": error.message, "error": str(error), "action": error.action})

    def abandon(self) -> None:
        """stdout has no reader: let the interpreter's own flush at exit go nowhere."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def note(text: str, end: str = "\n") -> None:
    """For people, on stderr."""
    print(plain(text), end=end, file=sys.stderr, flush=True)


class PlainFormatter(logging.Formatter):
    """For log records: their tracebacks may quote anybody."""

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record))


def _finite(value: Any) -> Any:
    """JSON has no infinities: they become the strings "inf", "-inf" and "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
