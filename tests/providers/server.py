"""A local HTTP server that speaks the streaming chat-completions protocol, and misbehaves on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Script:
    """What the server does next. ``statuses`` are answered first, one a request; then ``answer`` is streamed."""

    answer: str = ""
    statuses: list[int] = field(default_factory=list)
    raw: bytes | None = None
    endless: bytes = b""  # sent again and again until nobody reads
    events: list[Any] = field(default_factory=list)  # each the JSON of one
    headers: dict[str, str] = field(default_factory=dict)
    error: str = ""  # the message of a failure; {key} is what the client sent for authorization
    stall_seconds: float = 0.0
    cut: bool = False
    retry_after: int = 0
    usage: tuple[int, int] | None = (100, 50)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """Yields the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            script.requests.append(json.loads(body))
            script.keys.append(self.headers.get("Authorization", ""))
            if script.statuses:
                self._fail(script.statuses.pop(0))
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            for name, value in script.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for event in script.events:
                self._line(event)
            while script.endless:
                try:
                    self.wfile.write(script.endless)
                except (BrokenPipeError, ConnectionResetError):
                    return
            if script.raw is not None or script.events:
                self.wfile.write(script.raw or b"data: [DONE]\n\n")
                return
            answer = script.answer.replace("{key}", self.headers.get("Authorization", ""))
            for start in range(0, len(answer), 40):
                self._chunk({"delta": {"content": answer[start : start + 40]}, "finish_reason": None})
                time.sleep(script.stall_seconds)
            if script.cut:
                return
            self._chunk({"delta": {}, "finish_reason": "stop"})
            if script.usage:
                prompt, completion = script.usage
                usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
                self._event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _fail(self, status: int) -> None:
            said = script.error.replace("{key}", self.headers.get("Authorization", ""))
            message = said or f"status {status} for key sk-secret"
            payload = json.dumps({"error": {"message": message, "type": "x"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.send_header("Retry-After", str(script.retry_after))
            self.end_headers()
            self.wfile.write(payload)

        def _chunk(self, choice: dict[str, Any]) -> None:
            self._event({"choices": [{"index": 0, **choice}]})

        def _event(self, fields: dict[str, Any]) -> None:
            self._line({"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", **fields})

        def _line(self, data: Any) -> None:
            try:
                self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
                self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)  # how long shutdown() may take
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
