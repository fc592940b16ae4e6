"""Accesses of a candidate to shared memory that have bank conflicts, drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cutegen_lab.core.trial import SharedAccess
from cutegen_lab.layouts.access import Lane, access_of_lanes
from cutegen_lab.layouts.panels import addresses_panel, wavefronts_panel
from cutegen_lab.layouts.picture import Picture


@dataclass(frozen=True)
class ConflictingAccess:
    """One warp's access, as a picture: where its lanes access shared memory, and which lanes each bank serves in each
    wavefront."""

    access: SharedAccess

    @property
    def lines(self) -> tuple[int, ...]:
        """The line of the candidate's text; () if there is none."""
        return (self.access.line,) if self.access.line else ()

    @property
    def layout(self) -> str:
        """A description: "load of 4 bytes per lane: 8 wavefronts instead of 1"."""
        unit = "row" if self._of_rows else "lane"
        return (
            f"{self.access.way} of {self.access.width} bytes per {unit}: {self.access.wavefronts} wavefronts "
            f"instead of {self.access.ideal}"
        )

    @property
    def what(self) -> str:
        """What it is, in tables that also list layouts."""
        return "access with bank conflicts"

    def picture(self) -> Picture:
        """The addresses of the lanes, and the wavefronts."""
        lanes = [Lane(n, (n,), at) for n, at in zip(self.access.lanes, self.access.offsets, strict=True)]
        access = access_of_lanes(lanes, self.access.width, self._of_rows)
        facts = {
            "layout": self.layout, "access": self.access.way, "width": self.access.width, "line": self.access.line,
            "lanes": list(self.access.lanes), "offsets": list(self.access.offsets),
            "wavefronts": len(access.wavefronts), "ideal": access.ideal, "conflicts": self.access.conflicts,
        }  # fmt: skip
        notes = (
            f"One warp at line {self.access.line}; the instruction has {self.access.conflicts:,.0f} bank conflicts in "
            "the whole launch",
            "A bank serves one 4-byte word per wavefront: other words of the same bank wait for the next one",
        )
        return Picture(self.layout, (addresses_panel(access), wavefronts_panel(access)), notes, facts)

    @property
    def _of_rows(self) -> bool:
        return self.access.way.endswith("matrix")


def conflicting(accesses: Iterable[SharedAccess]) -> tuple[ConflictingAccess, ...]:
    """Pictures of a profile's accesses with bank conflicts, in its order."""
    return tuple(map(ConflictingAccess, accesses))
