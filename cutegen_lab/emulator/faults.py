"""Exceptions that stop an emulation. Callers of the emulator get a Fault (a verdict) instead."""

from __future__ import annotations

from typing import Protocol

from cutegen_lab.core.verdict import Verdict


class Quoted(Protocol):
    """An instruction, as a message quotes it."""

    @property
    def line(self) -> int: ...  # line in the PTX text, from 1

    @property
    def text(self) -> str: ...  # text of the instruction in the PTX


class EmulatorStop(Exception):
    """Base of :class:`Unsupported` and :class:`Trap`; never leaves :mod:`cutegen_lab.emulator`."""

    verdict: Verdict

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unsupported(EmulatorStop):
    """PTX that the emulator does not read or execute. ``ptx_line`` counts from 1 in the PTX text (0: unknown)."""

    verdict = Verdict.UNSUPPORTED

    def __init__(self, message: str, ptx_line: int = 0, instruction: str = "") -> None:
        super().__init__(message)
        self.ptx_line = ptx_line
        self.instruction = instruction


class Trap(EmulatorStop):
    """An illegal operation of a kernel. ``gid``: number of the first offending thread in its CTA batch, if known."""

    def __init__(self, verdict: Verdict, message: str, gid: int | None = None, address: int | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.gid = gid
        self.address = address
        self.block: int | None = None  # basic block, if the trap was raised between instructions
        self.waiting: list[tuple[str, Quoted]] = []  # (who waits, at which instruction)
        self.instruction: Quoted | None = None  # the instruction to blame, if it is not the one being executed
        self.earlier: Quoted | None = None  # the earlier access that it conflicts with
        self.follows = False  # for an uninitialised read: it is a fault only if an effect depends on the value
