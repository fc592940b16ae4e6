"""``RefineWidget``: a run, live, with the analyst's verbs as buttons."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Literal

import anywidget
import traitlets
from IPython.display import display, update_display
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cutegen_lab.core.errors import CutegenError, SetupError
from cutegen_lab.notebook.run import NotebookRun, static_bundle

STATIC = Path(__file__).parent / "static"
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
_UPDATE_SECONDS = 0.2
_RESTING = ("review", "done")


class Command(BaseModel):
    """What the front end may send. Anything else is refused."""

    model_config = ConfigDict(extra="forbid")

    request_id: str = Field(max_length=200)
    verb: Literal["approve", "approve_unproven", "reject", "edit", "retry", "branch", "stop", "resume"]
    candidate_id: str | None = None
    target_id: str | None = None
    text: str = Field(default="", max_length=400_000)


def bundle_path(name: str) -> Path:
    """A file of the built front end. Raises SetupError where it was not built."""
    path = STATIC / name
    if not path.is_file():
        raise SetupError(f"the widget's {name} is missing", "Run `make labextension`, or install the wheel.")
    return path


class RefineWidget(anywidget.AnyWidget):
    """Shows ``run`` and takes answers. ``view`` is the synced :class:`~cutegen_lab.views.model.RunView` as JSON.

    A thread of its own builds views, at most five a second; workers of the run only wake it. Where the run rests, the
    static snapshot in the saved notebook is renewed.
    """

    _esm = bundle_path("widget.js")
    _css = bundle_path("widget.css")
    view = traitlets.Dict().tag(sync=True)

    def __init__(self, run: NotebookRun) -> None:
        super().__init__()
        self._run = run
        self._dirty, self._gone = threading.Event(), threading.Event()
        self._shown: str | None = None
        self._unsubscribe = run.handle.subscribe(lambda notice: self._dirty.set())
        self.on_msg(self._answer)
        self.refresh()
        threading.Thread(target=self._follow, name=f"cutegen-view-{run.run_id}", daemon=True).start()

    def __repr__(self) -> str:
        return f"RefineWidget({self._run.run_id!r})"

    def refresh(self) -> None:
        """Builds the view anew and syncs it."""
        view = self._run.view()
        self.view = view.model_dump(mode="json")
        if self._shown is not None and view.status in _RESTING:
            update_display(self.bundle(), raw=True, display_id=self._shown)

    def show(self) -> None:
        """Displays the widget; the output also holds the static snapshot a saved notebook shows without a kernel."""
        handle = display(self.bundle(), raw=True, display_id=f"cutegen-{self._run.run_id}")
        self._shown = handle.display_id if handle else None

    def bundle(self) -> dict[str, Any]:
        """Live while the run may still change; once done, the snapshot alone, so that a saved notebook is whole."""
        view = self._run.view()
        bundle = static_bundle(view)
        if view.status != "done":
            bundle[WIDGET_MIME] = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return bundle

    def close(self) -> None:
        self._gone.set()
        self._dirty.set()
        self._unsubscribe()
        super().close()

    def _follow(self) -> None:
        while not self._gone.is_set():
            self._dirty.wait()
            self._dirty.clear()
            if self._gone.is_set():
                return
            self.refresh()
            self._gone.wait(_UPDATE_SECONDS)

    def _answer(self, _: Any, content: Any, buffers: Any) -> None:
        try:
            command = Command.model_validate(content)
        except ValidationError as error:
            detail = error.errors()[0]
            where = ".".join(map(str, detail["loc"]))
            request = content.get("request_id", "") if isinstance(content, dict) else ""
            self.send(
                {"request_id": str(request)[:200], "ok": False, "error": f"not a command: {where}: {detail['msg']}"}
            )
            return
        try:
            self._perform(command)
        except CutegenError as error:
            self.send({"request_id": command.request_id, "ok": False, "error": str(error)})
        else:
            self.send({"request_id": command.request_id, "ok": True, "error": ""})
        self._dirty.set()

    def _perform(self, command: Command) -> None:
        handle = self._run.handle
        match command.verb:
            case "reject":
                handle.reject(command.text)
            case "edit":
                handle.edit(command.text)
            case "branch":
                handle.branch(command.target_id or command.candidate_id or "", command.text)
            case verb:
                getattr(handle, verb)()
