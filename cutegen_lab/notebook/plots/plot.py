"""A plot with its table, and both as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.profiles.row import RECORD
from cutegen_lab.profiles.trace import trace_text

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure

_IMAGES = (".png", ".svg", ".pdf")
CONFIG = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"format": "svg", "scale": 2}}
"""Settings of plotly's tool bar: its camera saves an SVG."""


@dataclass(frozen=True)
class Plot:
    """A figure and the numbers it shows."""

    name: str
    """Its name in the table of plots."""
    figure: Figure
    """The plotly figure."""
    records: Sequence[Any]
    """What it shows: records of :mod:`cutegen_lab.profiles.records`, those of a search or a profile, or timelines."""

    def __repr__(self) -> str:
        return f"<plot {self.name}: {len(self.table)} rows; .table, .df, .save('{self.name}.svg')>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return dict(self.figure._repr_mimebundle_())

    @property
    def flat(self) -> list[Any]:
        """The records, each timeline replaced by its spans."""
        parts = (record.spans if isinstance(record, Timeline) else (record,) for record in self.records)
        return [each for part in parts for each in part]

    @property
    def table(self) -> list[dict[str, Any]]:
        """A mapping for each row of the table; a config has a column for each parameter (``config.threads``)."""
        return [{RECORD: type(record).__name__, **dict(_columns(record))} for record in self.flat]

    @property
    def df(self) -> DataFrame:
        """The table as a pandas DataFrame. Raises SetupError if pandas is not installed."""
        from cutegen_lab.profiles.row import frame_of

        return frame_of(self.table)

    @property
    def csv(self) -> str:
        """The table as CSV; a field is empty where a kind of row has no such column."""
        rows, out = self.table, io.StringIO()
        columns = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(out, columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    @property
    def trace(self) -> str:
        """Its timelines as JSON for https://ui.perfetto.dev; "" if it shows none."""
        timelines = [record for record in self.records if isinstance(record, Timeline)]
        return trace_text(timelines) if timelines else ""

    def save(self, path: str | Path) -> Path:
        """Writes the format that the suffix names: ``.html``, ``.csv``, ``.png``, ``.svg`` or ``.pdf``; ``.json`` is a
        timeline as a trace for Perfetto. Raises InputError for another suffix, for a file that cutegen did not write,
        and for any existing image; SetupError for an image without kaleido."""
        from cutegen_lab.session.outputs import may_write, write_out
        from cutegen_lab.views.html import GENERATOR

        path = Path(path)
        if path.suffix == ".csv":
            write_out(path, self.csv)
        elif path.suffix == ".html":
            page = self.figure.to_html(config=CONFIG)
            write_out(path, page.replace("<head>", f"<head>{GENERATOR}", 1))
        elif path.suffix == ".json" and (trace := self.trace):
            write_out(path, trace)
        elif path.suffix in _IMAGES:
            may_write(path)
            self._image(path)
        else:
            raise InputError(
                f"cannot tell from the name {path.name!r} what to write",
                "Name a file .html, .csv, .png, .svg or .pdf, or .json for the trace of a timeline.",
            )
        return path

    def _image(self, path: Path) -> None:
        try:
            self.figure.write_image(path, width=900, scale=2)
        except (ImportError, ValueError, RuntimeError) as error:  # without kaleido, or a browser for it
            raise SetupError(
                f"no image was made: {str(error).strip().splitlines()[0]}",
                "pip install kaleido (it needs Chrome), or save .html and use the camera above the plot.",
            ) from None


def _columns(record: Any) -> Iterator[tuple[str, Any]]:
    for name, value in asdict(record).items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", each) for key, each in value.items())
        else:
            yield name, value
