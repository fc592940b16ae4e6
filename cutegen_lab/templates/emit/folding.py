"""Folding of a module in steps that keep no state between them, so that each can be done in another process.

Between them the caller compiles what :func:`next_probe` returns, once for each workload, and collects its reports:
one list for each probe, with one report a workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutegen_lab.core.candidate import Config
from cutegen_lab.templates.emit.config import settings
from cutegen_lab.templates.emit.observe import Probe
from cutegen_lab.templates.emit.specialise import specialise


def folded_values(source: str, config: Config) -> dict[str, Any]:
    """The parameters of the module ``source``, and the values that ``config`` folds. Raises CannotSpecialise."""
    return settings(Probe(source).module, config)


def next_probe(source: str, reports: Sequence[Sequence[str]]) -> str | None:
    """Text that reports what ``reports`` do not contain yet; None if they contain everything."""
    probe, first = _probed(source, reports)
    return probe.text(first) if first < len(probe) else None


def folded_text(source: str, config: Config, reports: Sequence[Sequence[str]], *, rules: bool) -> str:
    """As :func:`~cutegen_lab.templates.emit.specialise.specialise`. Raises CannotSpecialise."""
    return specialise(_probed(source, reports)[0], config, rules=rules)


def _probed(source: str, reports: Sequence[Sequence[str]]) -> tuple[Probe, int]:
    """The module's probe that has read ``reports``, and the number of the first site that they leave out."""
    probe, first = Probe(source), 0
    for each in reports:
        first = probe.read(each, first)
    return probe, first
