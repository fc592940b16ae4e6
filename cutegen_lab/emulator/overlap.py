"""Which launches may still run beside the present one (CUDA C++ Programming Guide, "Programmatic Dependent Launch").

A programmatic launch may begin as soon as all blocks of the one before let it. Its griddepcontrol.wait waits for that
one alone (PTX ISA 9.7.13.12: "until all prerequisite grids in flight have completed"), and so for those before it only
where that one has waited itself.
"""

from __future__ import annotations

from cutegen_lab.emulator.clocks import Clocks

_NONE: frozenset[int] = frozenset()


class Overlap:
    """Launches are numbered from 1. ``launch``: the present one. Of the others, ``before`` has those that may run until
    a thread waits, and ``after`` those that may run even then."""

    def __init__(self) -> None:
        self.launch, self.before, self.after = 0, _NONE, _NONE
        self._programmatic = False
        self._all_waited = True  # every block of the present one, before it let the next begin
        self._some_waited: bool | None = None  # some block of it; None where nobody looked

    @property
    def first(self) -> int:
        """The earliest that may still run."""
        return min(self.before, default=self.launch)

    def begin(self, programmatic: bool) -> None:
        """The next launch."""
        last = self.launch
        if not programmatic:
            self.before = self.after = _NONE
        else:
            begun, left = self.before, self.after
            self.before = (left if self._all_waited else begun) | ({last} if last else _NONE)
            self.after = begun if self._some_waited is False else left
        self.launch = last + 1
        self._programmatic, self._all_waited, self._some_waited = programmatic, True, None

    def leave(self, clocks: Clocks) -> None:
        """Some blocks of the present launch have ended. What is not known of others is held against none."""
        if self._programmatic:
            self._all_waited &= clocks.every_block_waited()
            self._some_waited = bool(self._some_waited) or clocks.some_have_waited()
