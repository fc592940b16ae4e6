"""The stream of changes: what other processes do is told to everybody who may hear it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from cutegen_lab.core.run import Stopped
from cutegen_lab.stores.sqlite import SqliteStore
from cutegen_lab.views.listing import Changes, RunKey
from tests.loop.events import passing
from tests.loop.scripted import started
from tests.server.serving import ROOT, TOKEN, Server, keep, serving

BEARER = {"Authorization": f"token {TOKEN}"}
SOFT = RunKey(store=".cutegen", run_id="soft-1")
DRIVE = """
import sys
from cutegen_lab.stores.sqlite import SqliteStore
lease = SqliteStore(sys.argv[1]).lease(sys.argv[2])
print("driving", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("stream")
    SqliteStore(folder / "root/.cutegen/lab.db").close()
    with serving(folder, "/user/ana/") as found:
        yield found


@pytest.fixture
def store(server: Server) -> Iterator[SqliteStore]:
    made = SqliteStore(server.root / ".cutegen/lab.db")
    yield made
    made.close()


@asynccontextmanager
async def connected(
    server: Server, headers: dict[str, str], query: str = "?seconds=0.2"
) -> AsyncIterator[WebSocketClientConnection]:
    url = f"ws://127.0.0.1:{server.port}{server.base}cutegen/events{query}"
    socket = await websocket_connect(HTTPRequest(url, headers=headers))
    try:
        yield socket
    finally:
        socket.close()
        while await asyncio.wait_for(socket.read_message(), 10) is not None:
            pass


async def told(socket: WebSocketClientConnection, seconds: float = 10.0) -> Changes:
    message = await asyncio.wait_for(socket.read_message(), seconds)
    assert message is not None, "the server closed the stream"
    return Changes.model_validate_json(message)


def test_what_other_processes_do_is_told(server: Server, store: SqliteStore) -> None:
    async def talk(first: WebSocketClientConnection, second: WebSocketClientConnection) -> None:
        for socket in (first, second):
            opened = await told(socket)
            assert (opened.changed, opened.running, opened.awaiting) == (None, 0, [])
        keep(store, [started("soft-1"), *passing("c1")])
        for socket in (first, second):
            assert (await told(socket)).changed == [SOFT]
        command = [sys.executable, "-c", DRIVE, str(store.path), "soft-1"]
        with subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}
        ) as driver:
            (row,) = (await told(first)).awaiting  # it is at review, and now a process hears an answer
            assert (row.run_id, row.status, row.driver) == ("soft-1", "review", str(driver.pid))
            driver.kill()
        assert (await told(first)).awaiting == []
        server.ask("run", "PATCH", {"trashed": True}, store=".cutegen", id="soft-1")
        assert (await told(first, 2)).changed == [SOFT]

    async def follow() -> None:
        async with connected(server, BEARER) as second:
            async with connected(server, BEARER) as first:
                await talk(first, second)
            async with connected(server, BEARER) as late:
                assert (await told(late)).changed is None
                store.append("soft-1", Stopped("enough"))
                assert (await told(late)).changed == [SOFT]

    asyncio.run(follow())


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_the_token_there_is_no_stream(server: Server, token: str) -> None:
    async def talk() -> None:
        async with connected(server, {"Authorization": f"token {token}"} if token else {}):
            raise AssertionError("it was let in")

    with pytest.raises(HTTPClientError, match="403"):
        asyncio.run(talk())


def test_a_page_of_another_origin_with_the_cookie_hears_nothing(server: Server) -> None:
    cookie = server.log_in()

    async def talk(origin: str) -> None:
        async with connected(server, {**cookie, "Origin": origin}) as socket:
            assert (await told(socket)).changed is None

    asyncio.run(talk(f"http://127.0.0.1:{server.port}"))
    with pytest.raises(HTTPClientError, match="403"):
        asyncio.run(talk("https://evil.example"))


@pytest.mark.parametrize("query", ["", "?seconds=x", "?seconds=-1", "?seconds=nan", "?seconds=1e99"])
def test_a_strange_interval_does_no_harm(server: Server, query: str) -> None:
    async def talk() -> None:
        async with connected(server, BEARER, query) as socket:
            assert (await told(socket)).changed is None

    asyncio.run(talk())


def test_a_configured_work_directory_is_the_only_store(tmp_path: Path) -> None:
    elsewhere = SqliteStore(tmp_path / "elsewhere/lab.db")
    keep(elsewhere, [started("far-1")])
    within = SqliteStore(tmp_path / "root/.cutegen/lab.db")
    keep(within, [started("near-1")])
    with serving(tmp_path, environment={"CUTEGEN_HOME": str(tmp_path / "elsewhere")}) as server:
        assert [row["run_id"] for row in server.ask("runs").body["rows"]] == ["far-1"]
        assert server.ask("run", store=str(tmp_path / "elsewhere"), id="far-1").status == 200
        assert server.ask("run", store=".cutegen", id="near-1").status == 404
    elsewhere.close()
    within.close()
