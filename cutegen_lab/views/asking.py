"""Messages between Jupyter's server and the process that answers a view's queries, as lines of JSON."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from cutegen_lab.views.model import Query


class Asked(BaseModel):
    """A query about the run ``run_id`` of the store in ``place``; without an id, about the run in the ``.cutegen`` file
    ``place``. ``folder``: where exported files are written, relative to the process's own folder. ``number`` identifies
    the answer."""

    model_config = ConfigDict(extra="forbid")

    number: int
    place: Path
    run_id: str | None
    folder: Path
    query: Query


class Told(BaseModel):
    """The first line of the answer to ``number``; the second line is the result as JSON. ``error``: why there is no
    result, otherwise empty; ``action``: what to do next; ``wrong_input``: whether the error is an InputError."""

    model_config = ConfigDict(extra="forbid")

    number: int
    error: str = ""
    action: str = ""
    wrong_input: bool = False
