"""A run as HTML without scripts: a fragment for notebooks, and a self-contained report page.

Jinja2's autoescape escapes all text of candidates, models and analysts; no template marks it safe. Control and
bidirectional characters are shown as escapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cutegen_lab.core.plain_text import plain
from cutegen_lab.profiles import plot_data
from cutegen_lab.profiles.row import Row
from cutegen_lab.views import text
from cutegen_lab.views.again import problem_file
from cutegen_lab.views.coloured import coloured_lines
from cutegen_lab.views.model import CandidateView, RunView
from cutegen_lab.views.numbered import numbered_lines
from cutegen_lab.views.plots import check_matrix, of_candidate, of_run
from cutegen_lab.views.specialised import shown
from cutegen_lab.views.tree import candidate_tree
from cutegen_lab.views.units import microseconds, plural, seconds, size

_HERE = files("cutegen_lab.views") / "templates"
GENERATOR = '<meta name="generator" content="cutegen-lab">'  # identifies pages written by cutegen


def fragment(view: RunView) -> str:
    """Static HTML of a run with its own scoped style, for saved notebooks, GitHub and nbviewer."""
    picked = text.pick(view)
    return render("fragment.html", view=view, shown=picked and shown(picked), standing=text.standing(view))


@dataclass(frozen=True)
class RunPage:
    """A run on a page."""

    view: RunView
    """The run."""
    rows: Sequence[Row] = ()
    """Its table of numbers, which most plots are drawn from."""
    command: str = ""
    """Command that repeats the run."""


def report(pages: Sequence[RunPage], title: str = "cutegen report", general: bool = False) -> str:
    """One page for several runs: evidence, plots with their tables, lineage, checks, diffs, sources, provenance. No
    network, no scripts. ``general``: shows the texts with parameters, even if there are texts for one config alone."""
    runs = []
    for page in pages:
        view = page.view.model_copy(update={"candidates": [shown(c, general) for c in page.view.candidates]})
        runs.append({"page": page, "view": view, "shown": text.pick(view), "standing": text.standing(view)})
    return render("report.html", runs=runs, title=title)


def render(template: str, **values: object) -> str:
    """The text of one of the templates, with control characters escaped."""
    return plain(_environment().get_template(template).render(**values))


@cache
def _environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(str(_HERE)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(seconds=seconds, size=size, microseconds=microseconds, words=_words, plural=plural)
    env.globals.update(
        generator=Markup(GENERATOR),  # noqa: S704 - our own
        style=_style("style.css"),
        page_style=_style("page.css"),
        checks_of=lambda rows, candidate_id: check_matrix(plot_data.checks(rows, candidate_id)),
        coloured_lines=coloured_lines,
        problem_file=problem_file,
        plots_of_candidate=of_candidate,
        plots_of_run=of_run,
        candidate_tree=candidate_tree,
        numbered_lines=numbered_lines,
        verdict_tone=_tone,
    )
    return env


def _style(name: str) -> Markup:
    return Markup((_HERE / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def _words(name: str) -> str:
    return name.replace("_", " ")


def _tone(candidate: CandidateView) -> str:
    if not candidate.verdict:
        return "neutral"
    return "good" if candidate.verdict == "passed" else "bad"
