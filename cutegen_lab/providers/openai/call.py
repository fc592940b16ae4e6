"""One request to a model, which another thread can end while it waits or reads."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cutegen_lab.core.protocols import Say
from cutegen_lab.providers.conversation import Wanted

_CONNECTED = ("connection.connect_tcp.complete", "connection.start_tls.complete")  # of httpcore


@dataclass
class Call:
    """A request and how far it has come. Any thread may call :meth:`end`."""

    prompt: str
    """Text to send."""
    say: Say
    """Takes lines of progress."""
    wanted: Wanted = "text"
    """Form of the answer."""
    offered_bytes: int = 0
    """Bytes that tools and grammars may add to the prompt."""
    most_tokens: int | None = None
    """Maximum number of tokens of the answer; None for no limit."""
    limit: int | None = None
    """The maximum that was sent, which is smaller where the server refuses a larger one; None for no limit."""
    begun: bool = False
    """Whether the server may have processed the prompt, so that it costs something."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set once nobody waits for the answer."""
    _sockets: list[Any] = field(default_factory=list)

    def end(self) -> None:
        """Ends the wait for a retry, or the connection, so that the server notices it and stops the answer."""
        self.ended.set()
        for each in self._sockets:
            with suppress(OSError):  # closing it would not end a read on another thread
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def watch(self, request: Any) -> None:
        """Hook for the HTTP client of ``openai``: remembers the connection of ``request``."""
        request.extensions = {**request.extensions, "trace": self._traced}

    def _traced(self, event: str, info: dict[str, Any]) -> None:
        if event not in _CONNECTED:
            return
        connection = info["return_value"].get_extra_info("socket")
        if isinstance(connection, socket.socket):
            self._sockets.append(connection)
            if self.ended.is_set():
                self.end()
