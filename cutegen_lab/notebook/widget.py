"""``RefineWidget``: a live run with the analyst's verbs as buttons."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython.display import display, update_display
from pydantic import ValidationError

from cutegen_lab.core.errors import CutegenError, SetupError
from cutegen_lab.core.verbs import VERBS
from cutegen_lab.notebook.queries import answer
from cutegen_lab.notebook.run import NotebookRun, static_bundle
from cutegen_lab.views.hints import NOTEBOOK, advised
from cutegen_lab.views.model import MIME_TYPE, Command, Query, RunView

STATIC = Path(__file__).parent / "static"
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
_UPDATE_SECONDS = 0.2
_WATCH_SECONDS = 1.0  # seconds between reads of a run that another process drives
_RESTING = ("review", "done")
_log = logging.getLogger(__name__)


def bundle_path(name: str) -> Path:
    """Path of a file of the built front end. Raises SetupError if it was not built."""
    path = STATIC / name
    if not path.is_file():
        raise SetupError(f"the widget's {name} is missing", "Run `make labextension`, or install the wheel.")
    return path


@dataclass(frozen=True)
class _Moment:
    """Key that distinguishes saved snapshots of a run."""

    status: str
    updated_at: float
    live: bool
    specialised: int

    @classmethod
    def of(cls, view: RunView, bundle: dict[str, Any]) -> _Moment:
        specialised = sum(candidate.specialised is not None for candidate in view.candidates)
        return cls(view.status, view.updated_at, WIDGET_MIME in bundle, specialised)


class RefineWidget(anywidget.AnyWidget):
    """Shows ``run`` and takes answers. ``view``: the synced :class:`~cutegen_lab.views.model.RunView` as JSON.

    A separate thread builds views, at most five in a second; worker threads of the run only wake it. While another
    process may drive the run, the thread looks for new events every second. When the run waits for review or is done,
    the static snapshot in the saved notebook is updated in two ways: by a display update, which every front end
    handles, and by ``resting``, with which the JupyterLab extension does the same after a page reload, when display
    updates are lost.
    """

    _esm = bundle_path("widget.js")
    _css = bundle_path("widget.css")
    view = traitlets.Dict().tag(sync=True)
    resting = traitlets.Dict().tag(sync=True)  # text/plain and text/html; empty while the run is working

    def __init__(self, run: NotebookRun) -> None:
        super().__init__()
        self._run = run
        self._dirty, self._gone = threading.Event(), threading.Event()
        self._shown: str | None = None
        self._kept: _Moment | None = None  # key of the snapshot in the display; None before it is shown
        self._unsubscribe = run.handle.subscribe(lambda notice: self._dirty.set())
        self.on_msg(self._answer)
        self.refresh()
        threading.Thread(target=self._follow, name=f"cutegen-view-{run.run_id}", daemon=True).start()

    def __repr__(self) -> str:
        return f"RefineWidget({self._run.run_id!r})"

    def refresh(self) -> None:
        """Rebuilds the view and syncs it."""
        self._sync(self._run.view())

    def _sync(self, view: RunView) -> None:
        bundle = self._bundle(view)
        texts = {kind: bundle[kind] for kind in ("text/plain", "text/html")}
        with self.hold_sync():
            self.view = bundle[MIME_TYPE]
            self.resting = texts if view.status in _RESTING else {}
        self._keep(view, bundle)
        if view.status in _RESTING:
            self._run.handle.specialise(wait=False)

    def show(self) -> None:
        """Displays the widget. The output also contains the static snapshot, which a saved notebook shows without a
        kernel."""
        view = self._run.view()
        bundle = self._bundle(view)
        handle = display(bundle, raw=True, display_id=f"cutegen-{self._run.run_id}")
        self._shown = handle.display_id if handle else None
        self._kept = _Moment.of(view, bundle)

    def bundle(self) -> dict[str, Any]:
        """MIME bundle: live while the run can continue, otherwise only the snapshot, so that a saved notebook is
        complete."""
        return self._bundle(self._run.view())

    def _bundle(self, view: RunView) -> dict[str, Any]:
        bundle = static_bundle(view)
        if view.status != "done" or "resume" in view.verbs:
            bundle[WIDGET_MIME] = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return bundle

    def _keep(self, view: RunView, bundle: dict[str, Any]) -> None:
        """Updates the saved snapshot when the run waits for review or is done, and when a finished run continues."""
        now = _Moment.of(view, bundle)
        if self._kept is None or now == self._kept:
            return
        if view.status in _RESTING or now.live != self._kept.live:
            self._kept = now
            update_display(bundle, raw=True, display_id=self._shown)

    def close(self) -> None:
        self._gone.set()
        self._dirty.set()
        self._unsubscribe()
        super().close()

    def _follow(self) -> None:
        while not self._ended:
            woken = self._dirty.wait(_WATCH_SECONDS if self._elsewhere else None)
            self._dirty.clear()
            if self._ended:
                return
            try:
                view = self._run.view()
                # Events of another process do not wake this thread.
                if woken or view.model_dump(mode="json") != self.view:
                    self._sync(view)
            except Exception:  # a view that fails must not end the display
                if self._ended:  # the store was closed in the meantime
                    return
                _log.exception("the view of %s was not renewed", self._run.run_id)
            self._gone.wait(_UPDATE_SECONDS)

    @property
    def _ended(self) -> bool:
        return self._gone.is_set() or self._run.handle.closed

    @property
    def _elsewhere(self) -> bool:
        """Whether another process drives the run, or may resume it."""
        return not self._run.handle.driving and self.view["status"] != "done"

    def _answer(self, _: Any, content: Any, buffers: Any) -> None:
        """Replies to a :class:`~cutegen_lab.views.model.Command` or :class:`~cutegen_lab.views.model.Query`."""
        asks = isinstance(content, dict) and "query" in content
        try:
            message = (Query if asks else Command).model_validate(content)
        except ValidationError as error:
            detail = error.errors()[0]
            where = ".".join(map(str, detail["loc"]))
            request = content.get("request_id", "") if isinstance(content, dict) else ""
            kind = "a query" if asks else "a command"
            self._reply(str(request)[:200], f"not {kind}: {where}: {detail['msg']}")
            return
        if isinstance(message, Query):  # reading a large listing takes a second, during which cells should run
            threading.Thread(target=self._look_up, args=(message,), name="cutegen-query", daemon=True).start()
            return
        try:
            self._perform(message)
        except CutegenError as error:
            self._reply(message.request_id, str(advised(error, NOTEBOOK)))
        else:
            self._reply(message.request_id)
        self._dirty.set()

    def _reply(self, request_id: str, error: str = "", data: Any = None) -> None:
        self.send({"request_id": request_id, "ok": not error, "error": error, "data": data})

    def _look_up(self, query: Query) -> None:
        try:
            data = answer(self._run.handle, query)
        except CutegenError as error:
            self._reply(query.request_id, str(advised(error, NOTEBOOK)))
        except Exception:
            _log.exception("%s of %s was not found", query.query, query.candidate_id)
            self._reply(query.request_id, "internal error: see the kernel's log")
        else:
            self._reply(query.request_id, data=data)

    def _perform(self, command: Command) -> None:
        match VERBS[command.verb].takes:
            case "candidate":
                argument = command.target_id or command.candidate_id or ""
            case "place" | "note":
                argument = command.target_id or ""
            case _:
                argument = command.text
        self._run.handle.perform(command.verb, argument, command.text, command.candidate_id or "")
