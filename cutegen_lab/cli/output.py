"""Where words go. With ``--json`` stdout carries one object and nothing else, whatever a reference prints."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from cutegen_lab.core.errors import CutegenError


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
            print(text, flush=True)

    def result(self, data: Mapping[str, Any]) -> None:
        """The object, once. ``verdict`` and ``reason`` are always there."""
        if self._stdout is not None and not self._done:
            self._done = True
            whole = {"verdict": None, "reason": "", **data}
            os.write(self._stdout, (json.dumps(_plain(whole), allow_nan=False) + "\n").encode())

    def error(self, error: CutegenError) -> None:
        """One line on stderr; under ``--json`` also the object."""
        print(f"cutegen: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        self.result({"reason": error.message, "error": str(error), "action": error.action})

    def abandon(self) -> None:
        """stdout has no reader: let the interpreter's own flush at exit go nowhere."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _plain(value: Any) -> Any:
    """JSON has no infinities: they become the strings "inf", "-inf" and "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
