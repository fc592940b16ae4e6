"""Runs as lines of a list, as the sidebar shows them; TypeScript types are generated from these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.run import MOST_TITLE, RunSummary, Step
from cutegen_lab.views.model import Finite, View

Status = Literal["running", "review", "done", "interrupted"]


class RunRow(View):
    """One run. ``driver``: the process that drives it, "" for none. ``notebook``: path of the notebook whose Jupyter
    kernel is the driver, "" if unknown."""

    store: str
    run_id: str
    problem: str
    title: str
    status: Status
    step: str
    outcome: str
    created_at: float
    updated_at: float
    candidates: int
    accepted: int
    gpu: str
    device: str
    best_id: str
    best_us: Finite | None = None
    best_kind: str = ""
    speedup: Finite | None = None
    over: str = ""
    trashed: bool = False
    driver: str = ""
    notebook: str = ""


class StoreView(View):
    """A store that was found. ``folder``: the folder of the notebooks that use it; ``error``: why it cannot be read, ""
    if it can."""

    name: str
    folder: str
    error: str = ""


class RunList(View):
    """A page of the runs that were asked for, latest first. ``total``: their number on all pages; ``trashed``: number
    of runs in the trash. ``problems``, ``gpus``: values to filter by. ``machine``: the GPU of the server, or
    "emulator". ``writable``: whether the user may rename runs, put them in the trash and resume them."""

    rows: list[RunRow]
    total: int
    trashed: int
    problems: list[str]
    gpus: list[str]
    stores: list[StoreView]
    machine: str
    writable: bool = True


class RunKey(View):
    """Identifies a run."""

    store: str
    run_id: str


class Changes(View):
    """An event of the stream, sent at its start and after each change. ``changed``: the runs that changed; None if any
    may have changed. ``awaiting``: runs that need an answer."""

    changed: list[RunKey] | None
    running: int
    awaiting: list[RunRow]
    machine: str


class TutorialView(View):
    """A notebook that comes with the package."""

    name: str
    title: str


class Change(BaseModel):
    """What may be changed of a run: its title ("" for the name of its problem), and whether it is in the trash."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(default=None, max_length=MOST_TITLE)
    trashed: bool | None = None


@dataclass(frozen=True)
class Wanted:
    """Selects the runs of a list. An empty field matches any run; ``text``: words, all of which must be found in a
    run's title, problem, id, GPU or device; ``since``, ``until``: limits of the last change, in Unix seconds."""

    text: str = ""
    problem: str = ""
    status: str = ""
    gpu: str = ""
    since: float | None = None
    until: float | None = None
    trashed: bool = False

    def fits(self, row: RunRow) -> bool:
        searched = " ".join((row.title, row.problem, row.run_id, row.gpu, row.device)).casefold()
        return (
            row.trashed == self.trashed
            and all(word in searched for word in self.text.casefold().split())
            and self.problem in ("", row.problem)
            and self.status in ("", row.status)
            and self.gpu in ("", row.gpu)
            and (self.since is None or row.updated_at >= self.since)
            and (self.until is None or row.updated_at <= self.until)
        )


def run_row(run: RunSummary, store: str) -> RunRow:
    """``run`` as a row, for a run that no process drives."""
    problem = one_line(run.name)
    return RunRow(
        store=store,
        run_id=one_line(run.run_id),
        problem=problem,
        title=one_line(run.title) or problem,
        status="done" if run.step is Step.DONE else "interrupted",
        step=run.step.value,
        outcome=one_line(run.outcome),
        created_at=run.created_at,
        updated_at=run.updated_at,
        candidates=run.candidates,
        accepted=run.accepted,
        gpu=one_line(run.gpu),
        device=one_line(run.device),
        best_id=one_line(run.best_id),
        best_us=run.best_us,
        best_kind=one_line(run.best_kind),
        speedup=run.speedup,
        over=one_line(run.over),
        trashed=run.trashed_at is not None,
    )


def driven(row: RunRow, driver: str, notebook: str) -> RunRow:
    """``row`` of a run that is not done and that the process ``driver`` drives."""
    status: Status = "review" if row.step == Step.REVIEW.value else "running"
    return row.model_copy(update={"status": status, "driver": driver, "notebook": notebook})


def page(rows: Iterable[RunRow], wanted: Wanted, offset: int, limit: int) -> tuple[list[RunRow], int]:
    """At most ``limit`` of the matching rows from ``offset`` on, latest first, and the number of matching rows."""
    fitting = sorted((row for row in rows if wanted.fits(row)), key=lambda row: (-row.updated_at, row.run_id))
    return fitting[offset : offset + limit], len(fitting)
