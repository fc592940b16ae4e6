"""``ast.parse`` that several threads may call at once."""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()
_TRIES = 5


def parse(source: str, filename: str = "<unknown>") -> ast.Module:
    """The module's tree. Raises SyntaxError and ValueError as ``ast.parse`` does.

    CPython 3.11 counts the depth of trees under construction in one place for all threads and raises SystemError when
    two parse at once (python/cpython#106905). Our own take turns; against anyone else's thread it is tried again.
    """
    with _ONE_AT_A_TIME:
        for _ in range(_TRIES - 1):
            try:
                return ast.parse(source, filename)
            except SystemError:
                continue
        return ast.parse(source, filename)
