"""The server extension: what JupyterLab shows of runs when no kernel is there to ask. It reads stores; it never runs
anything of a run, and imports neither torch nor cutlass. A process of its own answers what takes these."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "cutegen_lab.server"}]


def _load_jupyter_server_extension(serverapp: ServerApp) -> None:
    from cutegen_lab.server.app import add_handlers

    add_handlers(serverapp)
