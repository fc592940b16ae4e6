"""How a magic fails: with one line instead of a traceback, and a failed cell, which stops a notebook that runs
unattended."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.plain_text import plain
from cutegen_lab.views.hints import NOTEBOOK, advised

_R = TypeVar("_R")


class Interrupted(KeyboardInterrupt):
    """The analyst interrupted a cell. ``message``: what continues and what to do next, shown as one line."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))

    def _render_traceback_(self) -> list[str]:
        return [f"cutegen: {self}"]


@contextmanager
def kept_on_interrupt(message: str) -> Iterator[None]:
    """Turns an interrupt while waiting into :class:`Interrupted`; the awaited work continues."""
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {message}") from None


def guarded(debug: bool, work: Callable[[], _R]) -> _R:
    """Result of ``work``. Any error is raised as a CutegenError, which IPython shows as one line, and an interrupt as
    :class:`Interrupted`; with ``debug``, the traceback is printed first."""
    try:
        return work()
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except Exception as error:
        if debug:
            print(plain(traceback.format_exc()), file=sys.stderr)
        if isinstance(error, CutegenError):
            raise advised(error, NOTEBOOK)  # noqa: B904 - the same error
        internal = f"internal error: {type(error).__name__}: {error}"
        raise CutegenError(internal, "Add --debug for the traceback.") from error
