"""A real Jupyter Server in a process of its own, with the extension as its own configuration file enables it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from cutegen_lab.core.run import Answer, Answered, Event, StoredEvent
from cutegen_lab.loop import fold
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.events import passing
from tests.loop.scripted import started

ROOT = Path(__file__).parents[2]
TOKEN = "open-sesame"  # noqa: S105 - of a server that lives for a test


@dataclass(frozen=True)
class Told:
    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Server:
    """``base``: its base URL. Requests carry the token unless told otherwise."""

    port: int
    base: str
    root: Path
    log: Path
    process: subprocess.Popen[bytes]

    def ask(
        self, endpoint: str, method: str = "GET", body: object = None, token: str = TOKEN,
        headers: dict[str, str] | None = None, raw: bool = False, **query: object,
    ) -> Told:  # fmt: skip
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        url = f"{self.base}cutegen/{endpoint}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else body if raw else json.dumps(body)
        sent = {"Authorization": f"token {token}"} if token else {}
        connection.request(method, url, data, {**sent, **(headers or {})})  # type: ignore[arg-type]
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        with contextlib.suppress(ValueError):
            return Told(answer.status, json.loads(text), dict(answer.getheaders()))
        return Told(answer.status, text, dict(answer.getheaders()))

    def log_in(self) -> dict[str, str]:
        """The cookies of a browser that opened JupyterLab with the token."""
        kept: list[str] = []
        for page in (f"login?token={TOKEN}", "lab"):
            connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("GET", self.base + page, headers={"Cookie": "; ".join(kept)})
            answer = connection.getresponse()
            kept += [value.partition(";")[0] for name, value in answer.getheaders() if name.lower() == "set-cookie"]
            answer.read()
            connection.close()
        return {"Cookie": "; ".join(kept)}


@contextlib.contextmanager
def serving(folder: Path, base: str = "/", environment: dict[str, str] | None = None) -> Iterator[Server]:
    """A server whose root is ``folder/root``."""
    root, config = folder / "root", folder / "config/jupyter_server_config.d"
    root.mkdir(exist_ok=True)
    config.mkdir(parents=True)
    shutil.copy(ROOT / "jupyter-config/cutegen_lab.json", config)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "log"
    own = {
        name: str(folder / name) for name in ("HOME", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")
    }
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603
            [
                sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}",
                "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}",
                f"--ServerApp.base_url={base}",
            ],
            env={
                "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "JUPYTER_CONFIG_PATH": str(config.parent),
                **own, **(environment or {}),
            },
            stdout=output, stderr=subprocess.STDOUT, cwd=folder,
        )  # fmt: skip
    server = Server(port, base, root, log, process)
    try:
        for _ in range(300):
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(OSError):
                if server.ask("runs").status == 200:
                    break
            time.sleep(0.1)
        else:
            raise AssertionError(log.read_text())
        yield server
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def finished_run(run_id: str) -> list[Event]:
    """Two candidates, the second 2.5 times as fast; both approved, then stopped."""
    approve = Answered(Answer("approve"))
    return [
        started(run_id), *passing("c1", time_us=10.0), approve, *passing("c2", "c1", time_us=4.0), approve,
        Answered(Answer("stop")),
    ]  # fmt: skip


def keep(store: SqliteStore, events: list[Event], at: float = 1000.0) -> None:
    """Stores a run whose last event was at ``at``."""
    stored = [StoredEvent(number, at, event) for number, event in enumerate(events, 1)]
    store.insert(stored, fold(events))
