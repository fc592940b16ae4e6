"""What the widget's plots of a profile show, as one answer to a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.profiles import roofline, select
from cutegen_lab.profiles.records import Ceiling, CheckCell, Limit, MemoryBar, RooflinePoint, WhatIf
from cutegen_lab.profiles.row import Row
from cutegen_lab.views.model import View


class ProfileView(View):
    """Plots of one candidate; the roofline has all. A list is empty where nothing is known."""

    candidate_id: str
    gpu: str
    points: list[RooflinePoint]
    ceilings: list[Ceiling]
    memory: list[MemoryBar]
    limits: list[Limit]
    what_if: list[WhatIf]
    checks: list[CheckCell]


def profile_view(rows: Sequence[Row], candidate_id: str, gpu: GpuSpec) -> ProfileView:
    """The plots of ``candidate_id`` from the run's rows."""
    points = roofline.points(rows)
    return ProfileView(
        candidate_id=candidate_id, gpu=gpu.name, points=points, ceilings=roofline.ceilings(rows, gpu) if points else [],
        memory=select.memory(rows, candidate_id), limits=select.limits(rows, candidate_id),
        what_if=_steps(select.what_if(rows, candidate_id, gpu)),
        checks=[_finite(cell) for cell in select.checks(rows, candidate_id)],
    )  # fmt: skip


def _steps(points: Sequence[WhatIf]) -> list[WhatIf]:
    """Both ends of every stretch in which as many warps fit, and where the kernel is."""
    found = []
    for _, run in groupby(points, key=lambda p: (p.kernel, p.resource, p.resident_warps)):
        stretch = list(run)
        found += [p for p in stretch if p.current or p in (stretch[0], stretch[-1])]
    return found


def _finite(cell: CheckCell) -> CheckCell:
    """JSON has no infinity."""
    share = cell.error_over_budget
    return replace(cell, error_over_budget=None) if share is not None and not math.isfinite(share) else cell
