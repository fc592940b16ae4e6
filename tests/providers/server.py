"""A local HTTP server that speaks the streaming Responses and chat-completions APIs, and misbehaves on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass
class Script:
    """What the server does next. ``statuses`` are answered first, one a request; then ``answer`` is streamed."""

    answer: str = ""
    tool_input: str = ""  # of a call of a custom tool, after ``answer``; Responses API
    apis: tuple[Literal["chat", "responses"], ...] = ("chat",)  # other paths are not found
    broken: tuple[Literal["chat", "responses"], ...] = ()  # answered 500, always
    statuses: list[int] = field(default_factory=list)
    raw: bytes | None = None
    endless: bytes = b""  # sent again and again until nobody reads
    events: list[Any] = field(default_factory=list)  # each the JSON of one
    headers: dict[str, str] = field(default_factory=dict)
    error: str = ""  # the message of a failure; {key} is what the client sent for authorization
    code: str = ""  # of a failure
    refused: Mapping[str, str] = field(default_factory=dict)  # option -> message of the 400 for a request with it
    largest_limit: int = 0  # requests for more tokens are answered 400; 0 for any
    stall_seconds: float = 0.0
    silent: bool = False  # after the first event, until the client is gone
    deaf: bool = False  # the same, before the response begins
    cut: bool = False
    retry_after: str = "0"
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    refusal: str = ""
    finish: str = "stop"
    usage: tuple[int, int] | None = (100, 50)
    cached: int = 0
    reasoned: int = 0
    usage_with_finish: bool = False  # in the last chunk with text, not in one of its own
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)  # with those that were not found
    times: list[float] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)  # the client closed a silent connection


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """Yields the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.paths.append(self.path)
            if self.path not in [PATHS[api] for api in script.apis]:
                self._reply(404, {"detail": "Not Found"})
                return
            script.requests.append(body)
            script.times.append(time.monotonic())
            script.keys.append(self.headers.get("Authorization", ""))
            if self.path in [PATHS[api] for api in script.broken]:
                self._fail(500, "ResponsesAPIResponse has no __aiter__")
            elif script.statuses:
                self._fail(script.statuses.pop(0), script.error)
            elif refusal := self._refusal(body):
                self._fail(400, refusal)
            elif script.deaf:
                self._wait_until_left()
            else:
                self._stream()

        def _refusal(self, body: dict[str, Any]) -> str:
            for option, message in script.refused.items():
                if option in body:
                    return message
            asked = max((body[name] for name in _LIMITS if name in body), default=0)
            if not script.largest_limit or asked <= script.largest_limit:
                return ""
            names, most = "'max_tokens' or 'max_completion_tokens'", script.largest_limit
            return f"{names} is too large: {asked}. This model's maximum context length is {most} tokens."

        def _stream(self) -> None:
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
            pieces = [answer[start : start + 40] for start in range(0, len(answer), 40)]
            (self._chat if self.path == PATHS["chat"] else self._responses)(pieces)

        def _chat(self, pieces: list[str]) -> None:
            for start in range(0, len(script.reasoning), 40):
                self._chunk({"delta": {script.reasoning_field: script.reasoning[start : start + 40]}})
            if script.refusal:
                self._chunk({"delta": {"refusal": script.refusal}})
            for text in pieces:
                self._chunk({"delta": {"content": text}, "finish_reason": None})
                time.sleep(script.stall_seconds)
                if script.silent:
                    self._wait_until_left()
                    return
            if script.cut:
                return
            usage = {"usage": self._usage("prompt", "completion")} if script.usage else {}
            self._chunk({"delta": {}, "finish_reason": script.finish}, **(usage if script.usage_with_finish else {}))
            if usage and not script.usage_with_finish:
                self._event({"choices": [], **usage})
            self._done()

        def _responses(self, pieces: list[str]) -> None:
            self._line({"type": "response.created", "response": {"status": "in_progress"}})
            for start in range(0, len(script.reasoning), 40):
                delta = script.reasoning[start : start + 40]
                self._line({"type": "response.reasoning_summary_text.delta", "delta": delta})
            if script.refusal:
                self._line({"type": "response.refusal.delta", "delta": script.refusal})
            for text in pieces:
                self._line({"type": "response.output_text.delta", "delta": text})
                time.sleep(script.stall_seconds)
                if script.silent:
                    self._wait_until_left()
                    return
            if script.tool_input:
                self._tool_call()
            if script.cut:
                return
            kind = "completed" if script.finish == "stop" else "incomplete"
            reason = (
                None if script.finish == "stop" else {"reason": script.finish.replace("length", "max_output_tokens")}
            )
            response = {"status": kind, "incomplete_details": reason}
            if script.usage:
                response["usage"] = self._usage("input", "output")
            self._line({"type": f"response.{kind}", "response": response})
            self._done()

        def _tool_call(self) -> None:
            item = {"type": "custom_tool_call", "id": "ctc", "call_id": "c", "name": "answer"}
            self._line({"type": "response.output_item.added", "output_index": 1, "item": {**item, "input": ""}})
            for start in range(0, len(script.tool_input), 40):
                delta = script.tool_input[start : start + 40]
                self._line({"type": "response.custom_tool_call_input.delta", "item_id": "ctc", "delta": delta})
            self._line({"type": "response.custom_tool_call_input.done", "item_id": "ctc", "input": script.tool_input})
            done = {**item, "input": script.tool_input}
            self._line({"type": "response.output_item.done", "output_index": 1, "item": done})

        def _usage(self, prompt: str, completion: str) -> dict[str, Any]:
            assert script.usage is not None
            sent, received = script.usage
            usage: dict[str, Any] = {
                f"{prompt}_tokens": sent, f"{completion}_tokens": received, "total_tokens": sent + received
            }  # fmt: skip
            if script.cached:
                usage[f"{prompt}_tokens_details"] = {"cached_tokens": script.cached}
            if script.reasoned:
                usage[f"{completion}_tokens_details"] = {"reasoning_tokens": script.reasoned}
            return usage

        def _wait_until_left(self) -> None:
            self.connection.settimeout(10)
            with suppress(TimeoutError):
                try:
                    gone = not self.connection.recv(1)
                except ConnectionResetError:
                    gone = True
                if gone:
                    script.left.set()

        def _fail(self, status: int, message: str) -> None:
            said = message.replace("{key}", self.headers.get("Authorization", ""))
            error = {"message": said or f"status {status} for key sk-secret", "type": "x", "code": script.code or None}
            self._reply(status, {"error": error}, {"Retry-After": script.retry_after})

        def _reply(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
            payload = json.dumps(body).encode()
            self.send_response(status)
            sent = {"Content-Type": "application/json", "Content-Length": str(len(payload)), **(headers or {})}
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(payload)

        def _chunk(self, choice: dict[str, Any], **fields: Any) -> None:
            self._event({"choices": [{"index": 0, **choice}], **fields})

        def _event(self, fields: dict[str, Any]) -> None:
            self._line({"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", **fields})

        def _line(self, data: Any) -> None:
            self._write(b"data: " + json.dumps(data).encode() + b"\n\n")

        def _done(self) -> None:
            self._write(b"data: [DONE]\n\n")

        def _write(self, data: bytes) -> None:
            try:
                self.wfile.write(data)
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
