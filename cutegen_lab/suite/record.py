"""The record of a suite (``suite.json``): settings, and a row for each problem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from cutegen_lab.core.errors import InputError
from cutegen_lab.session.kernels import read_text_file
from cutegen_lab.session.outputs import SUITE_FORMAT
from cutegen_lab.views.model import Finite, View

Outcome = Literal["correct", "wrong", "not compiled", "nothing accepted", "not read", "not run", "unfinished"]
Integrity = Literal["", "passed", "few checks", "not proven", "degenerate", "quarantined"]


class Row(View):
    """Results of one problem. Times are those of the accepted kernel, in microseconds.

    ``path``: the file. ``problem_key``: hash of the problem, "" if it was not read. ``family``: the template that
    serves it, "" if none does. ``compiled``: whether any candidate did. ``reason``: why there is no correct kernel, in
    one line. ``kind``, ``device``: whether the time was measured or predicted, and for which device. ``bound_us``:
    speed of light by the bytes that are read; ``floor_us``: reachable time of one kernel. ``eager_us``, ``best_us``:
    eager PyTorch and the fastest baseline (``best``), timed with the kernel. ``usd``: None without a price.
    ``seconds``: work of the run, over all its sessions; ``gpu_seconds``: of its checks, timings and profiles on a GPU,
    None without a GPU. ``label``: why the problem is degenerate, "" if it is not. ``integrity``: what the result is
    worth, "" without an accepted kernel (:func:`cutegen_lab.suite.integrity.integrity_of`). ``too_fast``: number of
    candidates whose times were below the bound.
    """

    name: str
    path: str
    level: int | None = None
    problem_key: str = ""
    family: str = ""
    outcome: Outcome
    reason: str = ""
    compiled: bool = False
    candidates: int = 0
    time_us: Finite | None = None
    kind: Literal["", "measured", "predicted"] = ""
    device: str = ""
    bound_us: Finite | None = None
    floor_us: Finite | None = None
    eager_us: Finite | None = None
    best_us: Finite | None = None
    best: str = ""
    tokens: int = 0
    usd: Finite | None = None
    seconds: float = 0.0
    run_id: str = ""
    label: str = ""
    gpu_seconds: float | None = None
    integrity: Integrity = ""
    too_fast: int = 0

    @property
    def correct(self) -> bool:
        return self.outcome == "correct"

    @property
    def telling(self) -> bool:
        """Whether the problem's times say something about kernels: it is not degenerate."""
        return not self.label

    @property
    def counted(self) -> bool:
        """Whether the kernel is correct, and its time is neither below the bound nor of a degenerate problem."""
        return self.correct and self.telling and self.integrity != "quarantined"

    @property
    def gap(self) -> float | None:
        """Time divided by the bound."""
        return self.time_us / self.bound_us if self.time_us and self.bound_us else None

    @property
    def over_eager(self) -> float | None:
        """Speedup over eager PyTorch."""
        return self.eager_us / self.time_us if self.time_us and self.eager_us else None

    @property
    def over_best(self) -> float | None:
        """Speedup over the fastest baseline."""
        return self.best_us / self.time_us if self.time_us and self.best_us else None

    @property
    def conditions(self) -> tuple[str, str]:
        """Kind of the time and device: times with other conditions are not comparable."""
        return self.kind, self.device


class Suite(View):
    """A suite that was run. ``total``: number of its problems; ``rows`` has those that were reached. ``settings``: the
    options of its runs. ``summary``: the aggregates of the rows."""

    format: Literal["cutegen-suite"] = SUITE_FORMAT
    version: Literal[1] = 1
    name: str
    gpu: str
    settings: Mapping[str, str | int | float | None] = {}
    total: int
    rows: tuple[Row, ...] = ()
    summary: Mapping[str, Any] = {}


def read_suite(path: Path) -> Suite:
    """The suite in the file ``path``. Raises InputError."""
    try:
        return Suite.model_validate_json(read_text_file(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(
            f"{path} is no record of a suite ({where}: {first['msg']})", "Name the suite.json of a suite."
        ) from None
