"""The lines of a candidate's text that take most of the resource that limits the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cutegen_lab.core.counters import SECTOR_BYTES, divergence
from cutegen_lab.core.predicted import AT_THE_FLOOR
from cutegen_lab.core.trial import Profile

SHOWN = 3
EXCERPT = 80  # maximum number of characters of a line's text in a table
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_DIVERGED = 0.85  # fraction of active lanes below which divergence is mentioned
_RESOURCES = (  # word in a profile's limiter -> (the counter that measures it, name of the resource)
    ("shared memory", "shared_wavefronts", "shared-memory wavefronts"),
    ("tensor", "tensor_ops", "tensor operations"),
    ("dependent", "warp_instructions", "instructions"),
    ("barriers", "barrier_waits", "barrier waits"),
    ("cluster waits", "cluster_waits", "cluster waits"),
    ("issue", "warp_instructions", "instructions"),
    ("units", "warp_instructions", "instructions"),
    ("", "moved_bytes", "global sectors"),
    ("", "warp_instructions", "instructions"),
)


@dataclass(frozen=True)
class HotLine:
    """A line of the candidate's text that takes much of the limiting resource."""

    line: int
    """Line of the candidate's text, from 1."""
    share: str
    """Its share of the resource in words ("42% of global sectors")."""
    cost: str
    """Cost of an access there in words ("bulk loads of 4,096 B"); empty if nothing stands out."""

    def text(self, source: str, most: int = EXCERPT) -> str:
        """The line's text in ``source``, without indentation; empty if ``source`` has no such line. A longer one than
        ``most`` characters ends after one of its tokens, with an ellipsis."""
        lines = source.splitlines()
        whole = lines[self.line - 1].strip() if self.line <= len(lines) else ""
        if len(whole) <= most:
            return whole
        ends = [token.end() for token in _TOKEN.finditer(whole, 0, most) if token.end() < most]
        return f"{whole[: ends[-1] if ends else most - 1].rstrip()}…"

    def __str__(self) -> str:
        return ", ".join(filter(None, (f"line {self.line}: {self.share}", self.cost)))


def limiting(profile: Profile) -> tuple[str, str]:
    """Counter that measures what limits the kernel, and its name in words; two empty strings without line counters."""
    by_line = [entry.counters for entry in profile.lines if entry.line > 0]
    counted = {counter for _, counter, _ in _RESOURCES if any(c.get(counter) for c in by_line)}
    fitting = ((c, name) for word, c, name in _RESOURCES if word in profile.limiter and c in counted)
    return next(fitting, ("", ""))


def hottest(profile: Profile, count: int = SHOWN) -> tuple[HotLine, ...]:
    """Lines that take most of the limiting resource, largest first; empty without counters by line, and at the floor,
    where no change would help."""
    by_line = {entry.line: entry.counters for entry in profile.lines if entry.line > 0}
    counter, name = limiting(profile)
    if not counter or AT_THE_FLOOR in profile.limiter:
        return ()
    total = sum(c.get(counter, 0.0) for c in by_line.values())
    ordered = sorted(by_line, key=lambda line: (-by_line[line].get(counter, 0.0), line))
    return tuple(
        HotLine(line, f"{by_line[line][counter] / total:.0%} of {name}", _cost(by_line[line]))
        for line in ordered[:count]
        if by_line[line].get(counter, 0.0) >= 0.005 * total
    )


def _cost(counters: Mapping[str, float]) -> str:
    said = [_sectors(counters, way) for way in ("load", "store", "atomic")]
    said += [_bulk(counters, way) for way in ("load", "store")]
    if requests := counters.get("shared_requests", 0.0):
        wavefronts = counters.get("shared_wavefronts", 0.0)
        ideal = wavefronts - counters.get("shared_conflicts", 0.0)
        said.append(f"{wavefronts / requests:.1f} wavefronts per request, ideal {ideal / requests:.3g}")
    # Bulk copies are issued by one elected thread: inactive lanes are no divergence there.
    elected = counters.get("bulk_loads", 0.0) + counters.get("bulk_stores", 0.0) > 0
    if (active := divergence(counters)) < _DIVERGED and not elected:
        said.append(f"{active:.0%} of lanes active")
    return ", ".join(filter(None, said))


def _sectors(counters: Mapping[str, float], way: str) -> str:
    """Sectors per request, and the ideal number: the minimum that holds the requested bytes."""
    requests = counters.get(f"global_{way}_requests", 0.0)
    if not requests:
        return ""
    sectors = counters.get(f"global_{way}_sectors", 0.0)
    ideal = min(sectors, counters.get(f"global_{way}_bytes", 0.0) / SECTOR_BYTES)
    # The compiler moves a load to the first use of its value, and gives it that line.
    what = "loads issued or first used here: " if way == "load" else ""
    return f"{what}{sectors / requests:.1f} sectors per request, ideal {ideal / requests:.3g}"


def _bulk(counters: Mapping[str, float], way: str) -> str:
    copies = counters.get(f"bulk_{way}s", 0.0)
    return f"bulk {way}s of {counters.get(f'bulk_{way}_bytes', 0.0) / copies:,.0f} B" if copies else ""
