"""Which launches may still run beside the present one (CUDA C++ Programming Guide, "Programmatic Dependent Launch").

A programmatic launch may begin as soon as all blocks of the one before let it. Its griddepcontrol.wait waits for that
one alone (PTX ISA 9.7.13.12: "until all prerequisite grids in flight have completed"), and so for those before it only
where that one has waited itself.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.vector_clock import VectorClocks

_NONE: frozenset[int] = frozenset()


class LaunchOverlap:
    """Launches are numbered from 1. ``launch``: the present one. Of the
    others, ``before`` has those that may run until a thread waits, and ``after`` those that may run even then."""

    def __init__(self) -> None:
        self.launch, self.before, self.after = 0, _NONE, _NONE
        self._outside = (False, False)
        self._programmatic = False
        self._all_waited = True  # every block of the present one, before it let the next begin
        self._some_waited: bool | None = None  # some block of it; None where nobody looked

    @property
    def first(self) -> int:
        """The earliest that may still run."""
        return min(self.before, default=self.launch)

    @property
    def meets_others(self) -> bool:
        """Whether what was before the first launch may still run: the maker of an input, or the call before."""
        return any(self._outside)

    def beside_others(self, waited: Array) -> Array:
        """Which threads may do so, by whether they have ``waited``?"""
        before, after = self._outside
        return np.where(waited, after, before)

    def begin(self, programmatic: bool) -> None:
        """The next launch."""
        last = self.launch
        (begun_out, left_out), (begun, left) = self._outside, (self.before, self.after)
        if not programmatic:
            self.before = self.after = _NONE
            self._outside = (False, False)
        else:
            early = left if self._all_waited else begun
            self.before = early | {last} if last else early
            self.after = begun if self._some_waited is False else left
            self._outside = (
                not last or (left_out if self._all_waited else begun_out),
                begun_out if self._some_waited is False else left_out,
            )
        self.launch = last + 1
        self._programmatic, self._all_waited, self._some_waited = programmatic, True, None

    def leave(self, clocks: VectorClocks) -> None:
        """Some blocks of the present launch have ended. What is not known of others is held against none."""
        if self._programmatic:
            self._all_waited &= clocks.every_block_waited()
            self._some_waited = bool(self._some_waited) or clocks.some_have_waited()
