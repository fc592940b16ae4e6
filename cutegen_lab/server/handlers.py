"""REST over the stores, and the stream of their changes. Every request is authenticated and authorised, and its origin
checked, as Jupyter Server does for its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from cutegen_lab.core.errors import CutegenError, InputError
from cutegen_lab.server.query_process import QueryProcess
from cutegen_lab.server.runs import Notebooks, Runs
from cutegen_lab.server.tutorials import tutorial, tutorials
from cutegen_lab.server.watch import Watch
from cutegen_lab.views.hints import NOTEBOOK, advised
from cutegen_lab.views.listing import Change, Changes, Wanted
from cutegen_lab.views.model import Query

RESOURCE = "contents"
"""Jupyter's resource that requests need access to: whoever may read (write) files may read (change) runs."""
READING = ("machine_code", "plots", "plot", "plotly", "check")
"""Queries that only read. Others write files, or compile and run what a store holds."""
EXECUTED = ("timeline",)
"""Plots that run what a store holds."""


class ListQuery(BaseModel):
    """The part of the list that is requested; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    q: str = Field(default="", max_length=200)
    problem: str = Field(default="", max_length=200)
    status: str = Field(default="", pattern="^(running|review|interrupted|done|)$")
    gpu: str = Field(default="", max_length=200)
    since: float | None = None
    until: float | None = None
    trashed: bool = False
    folder: str = Field(default="", max_length=4096)
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=100, ge=1, le=500)


class _Handler(APIHandler):
    auth_resource = RESOURCE

    def initialize(
        self, runs: Runs, watch: Watch, notebooks: Callable[[], Awaitable[Notebooks]], queries: QueryProcess
    ) -> None:
        self.runs, self.watch, self.notebooks, self.queries = runs, watch, notebooks, queries

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, CutegenError):
            self.set_status(404 if isinstance(error, InputError) else 409)
            self.finish({"message": str(advised(error, NOTEBOOK))})
        elif isinstance(error, ValidationError):
            first = error.errors()[0]
            self.set_status(400)
            self.finish({"message": f"{'.'.join(map(str, first['loc'])) or 'the request'}: {first['msg']}"})
        else:
            super().write_error(status_code, **kwargs)

    def log_exception(self, *error: Any) -> None:
        if not isinstance(error[1], (CutegenError, ValidationError)):  # these are part of the response
            super().log_exception(*error)

    def arguments(self) -> dict[str, str]:
        return {name: self.get_query_argument(name) for name in self.request.query_arguments}

    async def permitted(self, action: str, resource: str) -> bool:
        """Whether the user may do ``action`` ("read", "write") to Jupyter's ``resource``."""
        return bool(await ensure_async(self.authorizer.is_authorized(self, self.current_user, action, resource)))

    async def query(self) -> Query:
        """The view's query, if the user is permitted: a query that only reads needs the permission to read files;
        others need those to write files and to start kernels. Raises ValidationError, HTTPError."""
        found = Query.model_validate(self.get_json_body())
        reads = found.query in READING and not (found.query == "plot" and found.text in EXECUTED)
        needed = [("read", RESOURCE)] if reads else [("write", RESOURCE), ("write", "kernels")]
        for action, resource in needed:
            if not await self.permitted(action, resource):
                raise web.HTTPError(403, f"{found.query} needs the permission to {action} {resource}")
        return found


class RunsHandler(_Handler):
    """The list of runs."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        asked = ListQuery.model_validate(self.arguments())
        wanted = Wanted(asked.q, asked.problem, asked.status, asked.gpu, asked.since, asked.until, asked.trashed)
        found = await asyncio.to_thread(
            self.runs.listed, wanted, await self.notebooks(), asked.folder, asked.offset, asked.limit
        )
        writable = await self.permitted("write", RESOURCE)
        self.finish(found.model_copy(update={"writable": writable}).model_dump_json())


class RunHandler(_Handler):
    """One run: its view, changes to it, and queries of its view."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        store, run_id = self.get_query_argument("store"), self.get_query_argument("id")
        found = await asyncio.to_thread(self.runs.view, store, run_id)
        self.finish(found.model_dump_json())

    @web.authenticated
    @authorized
    async def patch(self) -> None:
        store, run_id = self.get_query_argument("store"), self.get_query_argument("id")
        change = Change.model_validate(self.get_json_body())
        found = await asyncio.to_thread(self.runs.change, store, run_id, change, await self.notebooks())
        self.watch.look_now()
        self.finish(found.model_dump_json())

    @web.authenticated
    async def post(self) -> None:
        """Answers a query of its view. Files are written into the folder of the store's notebooks."""
        query, run_id = await self.query(), self.get_query_argument("id")
        place = await asyncio.to_thread(self.runs.places.named, self.get_query_argument("store"))
        self.finish(await self.queries.ask(place.path, run_id, place.folder, query))


class ArchiveHandler(_Handler):
    """The run in a ``.cutegen`` file."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        found = await asyncio.to_thread(self.runs.archived, self.get_query_argument("path", strip=False))
        self.finish(found.model_dump_json())

    @web.authenticated
    async def post(self) -> None:
        """Answers a query of its view. Files are written into the folder of the ``.cutegen`` file."""
        query = await self.query()
        file = await asyncio.to_thread(self.runs.archive, self.get_query_argument("path", strip=False))
        folder = file.parent.relative_to(self.runs.places.root)
        self.finish(await self.queries.ask(file, None, folder.as_posix(), query))


class TutorialsHandler(_Handler):
    """The tutorials, or the one that is named."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        name = self.get_query_argument("name", "")
        found = tutorial(name) if name else [each.model_dump() for each in tutorials()]
        self.finish(json.dumps(found))


class ChangesSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """Sends a :class:`~cutegen_lab.views.listing.Changes` when it opens and after each change, with a delay of at most
    ``seconds`` (query argument, default 1)."""

    auth_resource = RESOURCE

    def initialize(self, watch: Watch) -> None:
        self.watch = watch
        self._end: Callable[[], None] = lambda: None

    def set_default_headers(self) -> None:
        """Sets none of a page's headers."""

    async def get(self, *args: Any, **kwargs: Any) -> None:
        user = self.current_user
        if user is None or not await ensure_async(self.authorizer.is_authorized(self, user, "read", RESOURCE)):
            raise web.HTTPError(403)
        await super().get(*args, **kwargs)

    def open(self, *args: Any, **kwargs: Any) -> None:
        super().open(*args, **kwargs)
        try:
            seconds = float(self.get_query_argument("seconds", "1"))
        except ValueError:
            seconds = 1.0
        self._end = self.watch.follow(self._tell, seconds)

    def on_message(self, message: str | bytes) -> None:
        """Ignores what the client sends."""

    def on_close(self) -> None:
        self._end()
        super().on_close()

    def _tell(self, changes: Changes) -> None:
        try:
            self.write_message(changes.model_dump_json())
        except WebSocketClosedError:
            self._end()
