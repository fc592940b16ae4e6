"""Follows the stores, whoever writes to them: other notebooks and other processes too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cutegen_lab.server.runs import Notebooks, Runs
from cutegen_lab.views.listing import Changes, RunKey, RunRow

LEAST_SECONDS, MOST_SECONDS = 0.2, 60.0
_log = logging.getLogger(__name__)

Follower = Callable[[Changes], None]


class Watch:
    """Polls the stores while there are followers, and reports changes. To be used on the server's event loop."""

    def __init__(self, runs: Runs, notebooks: Callable[[], Awaitable[Notebooks]]) -> None:
        self._runs, self._notebooks = runs, notebooks
        self._followers: dict[Follower, float] = {}
        self._seen: dict[tuple[str, str], RunRow] | None = None
        self._task: asyncio.Task[None] | None = None
        self._again = asyncio.Event()

    def follow(self, follower: Follower, seconds: float = 1.0) -> Callable[[], None]:
        """Calls ``follower`` soon, and within ``seconds`` after each change. Returns a function that unsubscribes
        ``follower``."""
        self._followers[follower] = min(max(seconds, LEAST_SECONDS), MOST_SECONDS)
        if self._task is None or self._task.done():
            self._seen = None
            self._task = asyncio.get_running_loop().create_task(self._look())
        elif self._seen is not None:
            follower(self._changes(None))
        self._again.set()

        def end() -> None:
            self._followers.pop(follower, None)

        return end

    def look_now(self) -> None:
        """Polls now, after a change by this process."""
        self._again.set()

    async def _look(self) -> None:
        while self._followers:
            try:
                notebooks = await self._notebooks()
                rows, _ = await asyncio.to_thread(self._runs.rows, notebooks)
            except Exception:  # a store that fails is reported in the list; the stream goes on
                _log.exception("the stores were not read")
            else:
                before, now = self._seen, {(row.store, row.run_id): row for row in rows}
                self._seen = now
                if before is None:
                    self._tell(None)
                elif keys := [key for key in {**before, **now} if before.get(key) != now.get(key)]:
                    self._tell([RunKey(store=store, run_id=run_id) for store, run_id in keys])
            self._again.clear()
            try:
                await asyncio.wait_for(self._again.wait(), min(self._followers.values(), default=LEAST_SECONDS))
            except TimeoutError:
                continue

    def _tell(self, changed: list[RunKey] | None) -> None:
        told = self._changes(changed)
        for follower in list(self._followers):
            follower(told)

    def _changes(self, changed: list[RunKey] | None) -> Changes:
        rows = [row for row in (self._seen or {}).values() if not row.trashed]
        return Changes(
            changed=changed,
            running=sum(row.status == "running" for row in rows),
            awaiting=[row for row in rows if row.status == "review"],
            machine=self._runs.machine,
        )
