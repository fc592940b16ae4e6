"""Runs of all stores: their list, their views, and changes to them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from cutegen_lab.core.errors import CutegenError, InputError, StoreError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.protocols import Compiler
from cutegen_lab.loop import fold
from cutegen_lab.server.places import DATABASE, Place, Places
from cutegen_lab.session.archives import look_into
from cutegen_lab.session.outputs import ARCHIVE_SUFFIX
from cutegen_lab.session.shown_texts import ShownTexts
from cutegen_lab.stores.sqlite import SqliteStore
from cutegen_lab.views.hints import NOTEBOOK
from cutegen_lab.views.listing import Change, RunList, RunRow, StoreView, Wanted, driven, page, run_row
from cutegen_lab.views.model import RunView
from cutegen_lab.views.run_view import build_view

Notebooks = Mapping[str, str]
"""Paths of notebooks by the process id of their Jupyter kernel."""


class _Opened:
    """An open store, and its runs as they were last read."""

    def __init__(self, place: Place) -> None:
        self.file = _identity(place.path)
        self.store = SqliteStore(place.path / DATABASE)
        self._name = place.name
        self._read: tuple[int, int] | None = None
        self._rows: list[RunRow] = []

    def rows(self, notebooks: Notebooks) -> list[RunRow]:
        """Every run. Rows are cached until the store changes, without the process that drives a run, which is looked up
        each time."""
        now = self.store.changes()
        if self._read != now:
            self._rows = [run_row(run, self._name) for run in self.store.runs()]
            self._read = now
        return [row if row.status == "done" else self._driven(row, notebooks) for row in self._rows]

    def _driven(self, row: RunRow, notebooks: Notebooks) -> RunRow:
        driver = self.store.driven_by(row.run_id)
        return driven(row, driver, notebooks.get(driver, "")) if driver else row


class Runs:
    """Runs of all ``places``. ``machine``: name of this machine's device. Thread-safe."""

    def __init__(self, places: Places, machine: str = "emulator") -> None:
        self.places, self.machine = places, machine
        self._lock = threading.RLock()
        self._opened: dict[Path, _Opened] = {}

    def close(self) -> None:
        with self._lock:
            for opened in self._opened.values():
                opened.store.close()
            self._opened.clear()

    def rows(self, notebooks: Notebooks, folder: str = "") -> tuple[list[RunRow], list[StoreView]]:
        """Every run, and the stores. Raises InputError for a folder that is not there."""
        rows, stores = [], []
        for place in self.places.all(folder):
            if place.problem:
                stores.append(StoreView(name=place.name, folder=place.folder, error=place.problem))
                continue
            error = ""
            try:
                with self._lock:
                    rows += self._open(place).rows(notebooks)
            except CutegenError as failure:
                error = one_line(str(failure))
            stores.append(StoreView(name=place.name, folder=place.folder, error=error))
        return rows, stores

    def listed(
        self, wanted: Wanted, notebooks: Notebooks, folder: str = "", offset: int = 0, limit: int = 100
    ) -> RunList:
        """A page of the runs that match ``wanted``."""
        rows, stores = self.rows(notebooks, folder)
        shown, total = page(rows, wanted, offset, limit)
        return RunList(
            rows=shown,
            total=total,
            trashed=sum(row.trashed for row in rows),
            problems=sorted({row.problem for row in rows}),
            gpus=sorted({row.gpu for row in rows} - {""}),
            stores=stores,
            machine=self.machine,
        )

    def view(self, store: str, run_id: str) -> RunView:
        """A run as its notebook would show it if no kernel drove it. Raises InputError, StoreError."""
        place = self.places.named(store)
        with self._lock:
            opened = self._open(place)
        events = opened.store.events(run_id)
        state = fold(stored.event for stored in events)
        elsewhere = "" if state.finished else opened.store.driven_by(run_id)
        texts = ShownTexts(place.path / "specialised", _no_compiler).known(state)
        view = build_view(state, events, [], False, elsewhere, NOTEBOOK, texts)
        return view.model_copy(update={"title": opened.store.title(run_id)})

    def change(self, store: str, run_id: str, change: Change, notebooks: Notebooks) -> RunRow:
        """Renames a run, puts it in the trash or takes it out; returns its new row. Raises InputError, StoreError."""
        place = self.places.named(store)
        with self._lock:
            opened = self._open(place)
        if change.title is not None:
            opened.store.rename(run_id, change.title)
        if change.trashed is not None:
            opened.store.trash(run_id, change.trashed)
        with self._lock:
            for row in opened.rows(notebooks):
                if row.run_id == run_id:
                    return row
        raise StoreError(f"no run {one_line(run_id)[:80]!r} in {place.name}", "Refresh the list of runs.")

    def archived(self, path: str) -> RunView:
        """The run in a ``.cutegen`` file, to look at; nothing of it is stored or run. Raises InputError."""
        events, state = look_into(self.archive(path))
        return build_view(state, events, [], False, "", NOTEBOOK)

    def archive(self, path: str) -> Path:
        """The ``.cutegen`` file of that path under the root. Raises InputError for any other."""
        file = self.places.inside(path)
        if not file.name.endswith(ARCHIVE_SUFFIX) or not file.is_file():
            raise InputError(f"{one_line(path)[:200]!r} is no {ARCHIVE_SUFFIX} file", "Open another.")
        return file

    def _open(self, place: Place) -> _Opened:
        """The open store of ``place``; it is opened again if its file was replaced. Call with the lock held."""
        known = self._opened.get(place.path)
        if known is not None and known.file == _identity(place.path):
            return known
        if known is not None:
            known.store.close()
            del self._opened[place.path]
        self._opened[place.path] = opened = _Opened(place)
        return opened


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = (path / DATABASE).stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _no_compiler() -> Compiler:
    raise AssertionError("known texts are only read")
