"""Which plots a page shows, from the numbers that the notebook's plots are drawn from."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.roofline import GPUS
from cutegen_lab.profiles import plot_data, roofline
from cutegen_lab.profiles.row import Row
from cutegen_lab.views.model import RunView
from cutegen_lab.views.plots.bars import memory_plot, occupancy_plot
from cutegen_lab.views.plots.lineage import lineage_plot
from cutegen_lab.views.plots.picture import Picture
from cutegen_lab.views.plots.roofline import roofline_plot
from cutegen_lab.views.plots.trend import error_plot, time_plot


def of_run(view: RunView, rows: Sequence[Row]) -> list[Picture]:
    """Plots with every candidate. Without ``rows``, those that the view alone has numbers for."""
    gpu = GPUS.get(view.settings.gpu)
    found = (
        lineage_plot(view),
        roofline_plot(roofline.records(rows, gpu)) if gpu else None,
        time_plot(view),
        error_plot(view),
    )
    return [each for each in found if each is not None]


def of_candidate(view: RunView, rows: Sequence[Row], candidate_id: str) -> list[Picture]:
    """Plots of one candidate; none without ``rows``."""
    gpu = GPUS.get(view.settings.gpu)
    own = plot_data.own(rows, candidate_id)
    found = (
        memory_plot(plot_data.moved(own, candidate_id), candidate_id),
        occupancy_plot(plot_data.occupancy(own, candidate_id, gpu), candidate_id, gpu.max_threads_per_sm // 32)
        if gpu else None,
    )  # fmt: skip
    return [each for each in found if each is not None]
