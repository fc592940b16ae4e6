"""Timelines as a file that Perfetto opens."""

import json
from collections.abc import Sequence
from dataclasses import replace

from cutegen_lab.core.timeline import Timeline, trace_events
from cutegen_lab.profiles.kernel_names import short_names


def trace_text(timelines: Sequence[Timeline]) -> str:
    """A trace as JSON (Trace Event Format) for https://ui.perfetto.dev; kernels have their short names."""
    names = short_names(timeline.kernel for timeline in timelines)
    return json.dumps(trace_events([replace(each, kernel=names[each.kernel]) for each in timelines])) + "\n"
