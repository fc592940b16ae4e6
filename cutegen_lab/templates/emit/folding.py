"""Folding of a module in stateless steps, so that each can run in another process.

Between two steps the caller compiles the text of :func:`next_probe` once for each workload and collects the reports:
one list for each probe, with one report per workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.emit.config import settings
from cutegen_lab.templates.emit.observe import Probe
from cutegen_lab.templates.emit.specialise import specialise


def folded_values(source: str, config: Config) -> dict[str, Any]:
    """The tunable parameters of module ``source`` with the values that folding uses. Raises CannotSpecialise."""
    return settings(Probe(source).module, config)


def next_probe(source: str, reports: Sequence[Sequence[str]]) -> str | None:
    """Text that reports the sites missing in ``reports``; None if none are missing."""
    probe, first = _probed(source, reports)
    return probe.text(first) if first < len(probe) else None


def folded_text(source: str, config: Config, reports: Sequence[Sequence[str]], *, rules: bool) -> str:
    """Like :func:`~cutegen_lab.templates.emit.specialise.specialise`. Raises CannotSpecialise."""
    return specialise(_probed(source, reports)[0], config, rules=rules)


def _probed(source: str, reports: Sequence[Sequence[str]]) -> tuple[Probe, int]:
    """The module's probe with ``reports`` read, and the number of the first missing site."""
    probe, first = Probe(source), 0
    for each in reports:
        first = probe.read(each, first)
    return probe, first
