"""Answers to queries of a view, for what the view itself does not hold: listings, plots, layouts, files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutegen_lab.exports import FORMATS, format_of
from cutegen_lab.views.evidence import diagnostics
from cutegen_lab.views.model import ExportView, FormatView, Query, View

if TYPE_CHECKING:
    from cutegen_lab.session.handle import RunHandle


def answer(handle: RunHandle, query: Query, folder: Path = Path()) -> Any:
    """What ``query`` asks of a run, as JSON data. ``folder``: where exported files are written. Raises InputError,
    SetupError."""
    chosen = query.candidate_id
    match query.query:
        case "check":
            return [each.model_dump(mode="json") for each in diagnostics(handle.check(query.text))]
        case "plotly":
            from plotly.offline import get_plotlyjs

            return get_plotlyjs()
        case "plots" | "plot":
            from cutegen_lab.notebook.plots.catalogue import subject_of
            from cutegen_lab.notebook.plots.plot_queries import plot_list, plot_view

            of = subject_of(handle, chosen)
            found: View = plot_view(of, query.text) if query.query == "plot" else plot_list(of)
        case "layouts":
            found = handle.layouts_view(chosen, general=query.general)
        case "layout":
            found = handle.layout_picture(chosen, int(query.text) if re.fullmatch(r"\d{1,6}", query.text) else -1)
        case "export":
            found = _exported(handle, query, folder)
        case "machine_code":
            found = handle.machine_code(chosen, general=query.general)
    return found.model_dump(mode="json")


def _exported(handle: RunHandle, query: Query, folder: Path) -> ExportView:
    """Writes files named after the run and the candidate."""
    written: tuple[Path, ...] = ()
    if query.text:
        chosen = FORMATS.get(query.text) or format_of(query.text, "")
        name = handle.run_id if chosen.of == "run" else f"{handle.run_id}-{query.candidate_id}"
        written = handle.export_as(
            folder / f"{name}{chosen.suffix}", chosen.name, query.candidate_id, general=query.general, verify=True
        )
    formats = [FormatView(name=f.name, suffix=f.suffix, help=f.help, needs=f.needs) for f in FORMATS.values()]
    return ExportView(formats=formats, paths=[str(each) for each in written])
