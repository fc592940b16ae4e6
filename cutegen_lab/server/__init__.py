"""The server extension: shows runs in JupyterLab without a kernel. It reads stores, runs no code of a run, and imports
neither torch nor cutlass; a separate process answers queries that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "cutegen_lab.server"}]


def _load_jupyter_server_extension(serverapp: ServerApp) -> None:
    from cutegen_lab.server.app import add_handlers

    add_handlers(serverapp)
