"""How the machine says that it cannot go on: raised inside, always a Fault (a verdict) outside."""

from __future__ import annotations

from typing import Protocol

from cutegen_lab.core.verdict import Verdict


class Quoted(Protocol):
    """An instruction, as a message quotes it."""

    @property
    def line(self) -> int: ...  # in the PTX text, from 1

    @property
    def text(self) -> str: ...  # as written there


class EmulatorStop(Exception):
    """Base of the two below; never leaves :mod:`cutegen_lab.emulator`."""

    verdict: Verdict

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unsupported(EmulatorStop):
    """PTX this machine does not read or execute. ``ptx_line`` counts from 1 in the PTX text (0: unknown)."""

    verdict = Verdict.UNSUPPORTED

    def __init__(self, message: str, ptx_line: int = 0, instruction: str = "") -> None:
        super().__init__(message)
        self.ptx_line = ptx_line
        self.instruction = instruction


class Trap(EmulatorStop):
    """A kernel did what no kernel may. ``gid`` is the first offending thread's global lane number, if it is known."""

    def __init__(self, verdict: Verdict, message: str, gid: int | None = None, address: int | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.gid = gid
        self.address = address
        self.block: int | None = None  # basic block, where the trap was raised between instructions
        self.waiting: list[tuple[str, Quoted]] = []  # who waits, and where
        self.instruction: Quoted | None = None  # where that is not the one being executed
        self.earlier: Quoted | None = None  # the access it collides with
        self.follows = False  # a read of what nobody wrote: fatal only if the value comes to matter
