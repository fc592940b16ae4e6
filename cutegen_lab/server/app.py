"""Puts the handlers into a Jupyter Server."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join

from cutegen_lab.config import Settings
from cutegen_lab.devices.cuda import nvml
from cutegen_lab.server.handlers import ArchiveHandler, ChangesSocket, RunHandler, RunsHandler, TutorialsHandler
from cutegen_lab.server.places import Places
from cutegen_lab.server.query_process import QueryProcess
from cutegen_lab.server.runs import Runs
from cutegen_lab.server.watch import Watch


def add_handlers(serverapp: ServerApp) -> None:
    """Serves the stores under the server's root at ``<base_url>/cutegen/``."""
    root = Path(serverapp.root_dir).expanduser()
    runs = Runs(Places(root, Settings.from_environment().workdir), next(iter(nvml.names()), "emulator"))
    atexit.register(runs.close)

    async def notebooks() -> Mapping[str, str]:
        return await _notebooks(serverapp)

    watch = Watch(runs, notebooks)
    given = {"runs": runs, "watch": watch, "notebooks": notebooks, "queries": QueryProcess(runs.places.root)}
    at = {"runs": RunsHandler, "run": RunHandler, "archive": ArchiveHandler, "tutorials": TutorialsHandler}
    base: str = serverapp.web_app.settings["base_url"]
    handlers: list[tuple[Any, ...]] = [
        *((url_path_join(base, "cutegen", name), handler, given) for name, handler in at.items()),
        (url_path_join(base, "cutegen", "events"), ChangesSocket, {"watch": watch}),
    ]
    serverapp.web_app.add_handlers(".*$", handlers)  # type: ignore[no-untyped-call]


async def _notebooks(serverapp: ServerApp) -> dict[str, str]:
    """Paths of open notebooks by the process id of their Jupyter kernel, if that runs on this machine."""
    found = {}
    for session in await ensure_async(serverapp.session_manager.list_sessions()):
        kernels = serverapp.kernel_manager
        try:
            kernel = kernels.get_kernel((session["kernel"] or {})["id"])
        except (KeyError, AttributeError):  # the kernel has ended, or a gateway runs it
            continue
        pid = getattr(getattr(kernel, "provisioner", None), "pid", None)
        if pid is not None and session["type"] == "notebook":
            found[str(pid)] = str(session["path"])
    return found
