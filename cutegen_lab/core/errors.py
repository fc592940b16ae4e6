"""Errors other than a candidate's failure.

A candidate's failure is a :class:`~cutegen_lab.core.verdict.Verdict`, never an exception. The tree::

    CutegenError              anything below; ``str()`` is one line that says what, the value seen, what to do next
    ├── ProblemError          the reference or its inputs cannot be used (exit status 2)
    ├── InputError            a bad argument, file or option (exit status 2)
    ├── SpecError             a spec's text cannot be compiled; it has the line and column (exit status 2)
    ├── SetupError            this machine lacks something: a compiler, a driver, a library, a device
    ├── ProviderError         a provider could not answer: key, network, empty or malformed answer
    │   ├── NotCovered        the templates cannot write a kernel for the reference
    │   └── ProviderExhausted a provider has nothing more to propose
    ├── StoreError            the store cannot be opened, read or written
    ├── CageError             the compile cage itself failed (not the candidate in it)
    └── Cancelled             the analyst stopped the work
"""

from __future__ import annotations

import errno
from typing import Self

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.plain_text import plain


class CutegenError(Exception):
    """Base of every error raised on purpose. ``message`` is one line; ``action`` says what to do next: a sentence, or a
    ``hint`` that each front end turns into a sentence. Both may quote untrusted text: control characters are
    escaped."""

    exit_status = 2

    def __init__(self, message: str, action: str | Hint = "") -> None:
        self.message = plain(message.rstrip(". "))
        self.hint = action if isinstance(action, Hint) else None
        self.action = ""
        super().__init__(plain(message))
        if action:
            self.advise(str(action))

    def advise(self, action: str) -> None:
        """Replaces the ``action``."""
        self.action = plain(action)
        self.args = (f"{self.message}. {self.action}",)

    @property
    def reason(self) -> str:
        """Message and action without the ``hint``, for callers that store the hint separately."""
        return str(self) if self.hint is None else self.message

    def _render_traceback_(self) -> list[str]:
        """One line for IPython in place of a traceback, which ``traceback.print_exception(sys.last_value)`` shows."""
        return [f"cutegen: {self}"]


class ProblemError(CutegenError):
    """The reference or its inputs cannot be used as a problem."""


class InputError(CutegenError):
    """A bad argument, file or option."""


class SpecError(CutegenError):
    """A spec cannot be compiled. ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, action: str = "", line: int = 1, column: int = 1) -> None:
        self.line, self.column = line, column
        super().__init__(f"line {line}, column {column}: {message}", action)


class SetupError(CutegenError):
    """This machine lacks something that was asked for."""


class ProviderError(CutegenError):
    """A provider could not answer."""

    usage = TokenUsage()
    """Tokens spent on the failed answer."""

    def after(self, usage: TokenUsage) -> Self:
        """This error, with ``usage`` added to the tokens spent."""
        self.usage = self.usage + usage
        return self


class NotCovered(ProviderError):
    """The templates cannot write a kernel for a reference; another provider may."""

    def __init__(self, message: str, action: str | Hint = "") -> None:
        super().__init__(message, action or Hint(Advice.OTHER_PROVIDER))


class ProviderExhausted(ProviderError):
    """A provider has nothing more to propose for this run."""


class StoreError(CutegenError):
    """The store cannot be opened, read or written."""


class CageError(CutegenError):
    """The compile cage failed; the candidate may be correct."""


class Cancelled(CutegenError):
    """The analyst stopped the work."""

    def __init__(self, message: str = "stopped") -> None:
        super().__init__(message)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


def of_the_disk(error: Exception) -> SetupError | None:
    """A SetupError for a full or read-only disk; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _FULL + _CLOSED:
        return None
    return SetupError(
        f"cannot write{f' {error.filename}' if error.filename else ''}: {error.strerror}",
        Hint(Advice.FREE_SPACE if error.errno in _FULL else Advice.MAKE_WRITABLE),
    )
