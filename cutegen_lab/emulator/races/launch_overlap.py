"""Launches that may overlap the current one (CUDA C++ Programming Guide, "Programmatic Dependent Launch").

A programmatic launch may begin as soon as all blocks of the previous launch allow it. Its griddepcontrol.wait waits for
that launch only (PTX ISA 9.7.13.12: "until all prerequisite grids in flight have completed"), and so for earlier ones
only if that launch has waited itself.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.vector_clock import VectorClocks

_NONE: frozenset[int] = frozenset()


class LaunchOverlap:
    """Launches are numbered from 1. ``launch``: the current one. ``before``: earlier launches that may still run before
    a thread's griddepcontrol.wait, ``after``: those that may run even after it."""

    def __init__(self) -> None:
        self.launch, self.before, self.after = 0, _NONE, _NONE
        self._outside = (False, False)
        self._programmatic = False
        self._all_waited = True  # whether every block of the current launch has waited before launch_dependents
        self._some_waited: bool | None = None  # whether some block of it has waited; None if not tracked

    @property
    def first(self) -> int:
        """The earliest launch that may still run."""
        return min(self.before, default=self.launch)

    @property
    def meets_others(self) -> bool:
        """True if work before the first launch may still run: the producer of an input, or the previous call."""
        return any(self._outside)

    def beside_others(self, waited: Array) -> Array:
        """By thread: True if it may overlap work before the first launch. ``waited``: it has executed
        griddepcontrol.wait."""
        before, after = self._outside
        return np.where(waited, after, before)

    def begin(self, programmatic: bool) -> None:
        """Starts the next launch."""
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
        """Records whether the blocks of a CTA batch that has ended have waited. Batches without clocks count as if they
        had."""
        if self._programmatic:
            self._all_waited &= clocks.every_block_waited()
            self._some_waited = bool(self._some_waited) or clocks.some_have_waited()
