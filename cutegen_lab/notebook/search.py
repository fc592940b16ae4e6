"""The result of ``%%cutegen_tune``: a search, live in the notebook and static in a saved one."""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import plain
from cutegen_lab.notebook.checked_arguments import verb
from cutegen_lab.notebook.failures import kept_on_interrupt
from cutegen_lab.notebook.search_figure import headline, plain_figure, search_figure, search_records
from cutegen_lab.session.refactor import account
from cutegen_lab.session.searching import Searching, Status
from cutegen_lab.session.tuned import TuningResult, concluded, kernel_text, paragraph_html, report, searched, table_html
from cutegen_lab.views.hints import NOTEBOOK, advised

if TYPE_CHECKING:
    from ipywidgets import HBox

    from cutegen_lab.core.candidate import Config
    from cutegen_lab.notebook.plots import Plot
    from cutegen_lab.tuning.trace import Trace

PLOTLY_MIME = "application/vnd.plotly.v1+json"
_UPDATE_SECONDS = 1.0
_log = logging.getLogger(__name__)


class NotebookSearch:
    """A search and its verbs. ``trace`` and :meth:`plot` show its current state at any time."""

    def __init__(self, searching: Searching) -> None:
        self.searching = searching

    def __repr__(self) -> str:
        return f"<cutegen search of {self.searching.problem.name}: {self.status}, {headline(self.trace)}>"

    @property
    def status(self) -> Status:
        """``running``, ``done``, ``cancelled`` or ``failed``."""
        return self.searching.status

    @property
    def trace(self) -> Trace:
        """Every evaluation so far."""
        return self.searching.trace()

    @property
    def found(self) -> TuningResult:
        """Result of the search. Raises InputError while it runs, and the search's own error if it failed."""
        if self.searching.error is not None:
            raise advised(self.searching.error, NOTEBOOK)
        if self.searching.found is None:
            raise InputError(f"the search is {self.status}", "Call wait(), or resume() first.")
        return self.searching.found

    @property
    def best(self) -> Config:
        """Fastest config that passed the judge. Raises InputError if there is none yet."""
        if (best := self.found.best) is None:
            raise InputError("no config passed the judge", "`search.found.rejected` says why; raise the budget.")
        return best

    @verb
    def wait(self, timeout: float | None = None) -> NotebookSearch:
        """Waits until the search has ended, or ``timeout`` seconds have passed."""
        with self.going_on():
            self.searching.wait(timeout)
        return self

    def going_on(self) -> AbstractContextManager[None]:
        """A block in which an interrupt reports that the search continues, and how to wait for it or end it."""
        return kept_on_interrupt("the search goes on; wait() waits for it again, cancel() ends it")

    @verb
    def cancel(self) -> NotebookSearch:
        """Ends the search and keeps its results; :meth:`resume` continues it."""
        self.searching.cancel()
        return self

    @verb
    def resume(self, budget: int | None = None) -> NotebookSearch:
        """Continues the search, up to ``budget`` configs in total (default: as before)."""
        self.searching.start(budget)
        return self

    @verb
    def plot(self) -> Plot:
        """Current state of the search as a figure, with every evaluation as ``.table`` and ``.df``; ``.save`` writes
        the figure or the table."""
        return self._plot("search", self.trace, self._title())

    @verb
    def plot_replay(self) -> Plot:
        """This search replayed on its recorded results, as a figure like that of :meth:`plot`; nothing is compiled or
        run. Raises InputError."""
        found = self.searching.replayed()
        near = f"within 3% of the fastest after {found.near} evaluations" if found.near else "never near the fastest"
        title = f"{self._title()}, replayed on {found.configs} recorded configs: {near}"
        return self._plot("replay", found.trace, title)

    @property
    def template(self) -> str:
        """Text of the kernel that is searched; with ``refactor``, the tunable text made of it. Raises InputError before
        there is one."""
        return self.found.tunable.source

    @verb
    def export(self, path: str | Path) -> Path:
        """Writes the kernel with the best config. Raises InputError if there is none, or if the existing file was not
        written by cutegen."""
        from cutegen_lab.session.outputs import write_out

        _ = self.best  # raises an error that says why there is none
        write_out(Path(path), kernel_text(self.searching.problem, self.found))
        return Path(path)

    def show(self) -> SearchDisplay:
        """Displays the search: live while it runs, then its result."""
        shown = SearchDisplay(self)
        shown.show()
        return shown

    def _plot(self, name: str, trace: Trace, title: str) -> Plot:
        from cutegen_lab.notebook.plots.plot import Plot

        return Plot(name, search_figure(trace, title), search_records(trace))

    def _title(self) -> str:
        return f"{self.searching.problem.name}: {self.searching.tunable.what}"

    def _ipython_display_(self) -> None:
        self.show()


class SearchDisplay:
    """One output in a notebook that follows a search: text and a cancel button above, the figure below.

    While the search runs both are widgets, updated at most once a second by a thread of their own, which the threads of
    the search wake. Afterwards static output replaces them, which a saved notebook shows without a kernel.
    """

    def __init__(self, search: NotebookSearch) -> None:
        self._search = search
        self._dirty = threading.Event()
        self._follower: threading.Thread | None = None
        name = uuid4().hex[:8]
        self._words_id, self._figure_id = f"cutegen-search-{name}", f"cutegen-figure-{name}"
        search.searching.subscribe(self._dirty.set)

    def show(self) -> None:
        from IPython.display import display

        if self._search.status != "running":
            display(summary_bundle(self._search), raw=True, display_id=self._words_id)
            display(figure_bundle(self._search), raw=True, display_id=self._figure_id)
            return
        from cutegen_lab.notebook.live_figure import LiveFigure

        self._figure = LiveFigure(self._search.plot().figure)
        display(self._controls(), display_id=self._words_id)
        display(self._figure, display_id=self._figure_id)
        self._follower = threading.Thread(target=self._follow, name="cutegen-search-view", daemon=True)
        self._follower.start()

    def _controls(self) -> HBox:
        """The cancel button, and next to it the last line of the search's log."""
        from ipywidgets import HTML, Button, HBox

        button = Button(description="Cancel", tooltip="End the search and keep its results")
        button.on_click(lambda _: self._search.cancel())
        self._said = HTML()
        return HBox([button, self._said])

    def wait(self) -> None:
        """Waits until the display shows the result of the search, which has ended."""
        if self._follower is not None:
            self._follower.join()

    def _follow(self) -> None:
        running = True
        while running:
            self._dirty.wait()
            self._dirty.clear()
            running = self._search.status == "running"
            try:
                self._renew() if running else self._rest()
            except Exception:  # a figure that fails must not end the display
                _log.exception("the view of %r was not renewed", self._search)
            threading.Event().wait(_UPDATE_SECONDS)

    def _renew(self) -> None:
        log = self._search.searching.log
        self._said.value = f'<span role="status" aria-live="polite">{escape(plain(log[-1]) if log else "")}</span>'
        self._figure.show(self._search.plot().figure)

    def _rest(self) -> None:
        from IPython.display import update_display

        update_display(summary_bundle(self._search), raw=True, display_id=self._words_id)
        update_display(figure_bundle(self._search), raw=True, display_id=self._figure_id)
        self._figure.close()
        self._said.close()


def figure_bundle(search: NotebookSearch) -> dict[str, Any]:
    """MIME bundle of the figure for front ends that render plotly, with one line of text for others."""
    return {"text/plain": plain(headline(search.trace)), PLOTLY_MIME: plain_figure(search.plot().figure)}


def summary_bundle(search: NotebookSearch) -> dict[str, Any]:
    return {"text/plain": plain(_text(search)), "text/html": plain(_html(search))}


def _text(search: NotebookSearch) -> str:
    searching = search.searching
    if searching.found is not None:
        return "\n".join([*_stage_one(searching), *report(searching.problem, searching.found), *_gain(searching.found)])
    return f"{search!r}" + (f"\n{advised(searching.error, NOTEBOOK)}" if searching.error else "")


def _html(search: NotebookSearch) -> str:
    """Text and a table, without scripts; texts from others are escaped."""
    searching, found = search.searching, search.searching.found
    if found is None:
        return f"<p>{escape(_text(search))}</p>"
    before, after = [*_stage_one(searching), *searched(searching.problem, found)], concluded(found)
    return paragraph_html(before) + table_html(found) + paragraph_html([*after, *_gain(found)])


def _stage_one(searching: Searching) -> list[str]:
    return account(searching.refactored) if searching.refactored else []


def _gain(found: TuningResult) -> list[str]:
    """The best config compared with the default one, if any passed."""
    return [f"the best config {found.gain.text}"] if found.gain else []
