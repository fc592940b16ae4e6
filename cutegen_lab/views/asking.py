"""Messages between Jupyter's server and the process that answers a view's queries, a line each."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from cutegen_lab.views.model import Query


class Asked(BaseModel):
    """A query about the run ``run_id`` of the store in ``place``; without an id, about the run in the ``.cutegen`` file
    ``place``. ``folder``: where exported files are written, from the process's own folder. ``number`` tells answers
    apart."""

    model_config = ConfigDict(extra="forbid")

    number: int
    place: Path
    run_id: str | None
    folder: Path
    query: Query


class Told(BaseModel):
    """The first line of the answer to ``number``; the second line is the result as JSON. ``error``: why there is none,
    if so, and ``action``: what to do next; ``wrong_input``: whether it is an InputError."""

    model_config = ConfigDict(extra="forbid")

    number: int
    error: str = ""
    action: str = ""
    wrong_input: bool = False
