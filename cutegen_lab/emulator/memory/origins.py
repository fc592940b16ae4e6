"""Origins of uninitialised values: who read them first, and the fault when an effect depends on one."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.ptx.syntax import Instruction


class Origins:
    """By site of a CTA batch (index in ``instructions`` + 1): the thread that first read an uninitialised value."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self._instructions = instructions
        self._first: dict[int, tuple[str, int, int | None]] = {}

    def note(self, number: int, what: str, gid: int, address: int | None = None) -> None:
        self._first.setdefault(number, (what, gid, address))

    def trap(self, number: int, depends: str, by: Instruction | None) -> Trap:
        """The trap for the value of site ``number``. ``depends`` says what depends on it in instruction ``by``."""
        what, gid, address = self._first[number]
        trap = Trap(Verdict.UNINITIALISED_READ, f"reads {what}, which nothing has written, and {depends}", gid, address)
        trap.instruction, trap.earlier = self._instructions[number - 1], by
        return trap
