"""Follows the builds of one process from the parent, through three pipes.

The candidate can write to two of them, reply and output; the third, status, is closed before any of its text is read.
So the status (isolation, limits, exit) can be trusted, and the reply cannot.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from cutegen_lab.compile import wire
from cutegen_lab.compile.limits import Limits
from cutegen_lab.core.errors import CageError, Cancelled
from cutegen_lab.core.protocols import Cancel

POLL_SECONDS = 0.03
OUTPUT_TAIL = 256 << 10
PHASES = ("import", "compile", "record")  # phases of a build, in order
PARTS = 2 + wire.RECORDINGS  # parts of a build: its cubin, its PTX, and the log of each recording
_CLAIM_BYTES, _ANSWER_BYTES = 128, 1 << 20
_MANY = 4  # limit on the total bytes of the parts of one process, as a multiple of the limit on one part


@dataclass
class Ending:
    """How a build ended."""

    reply: dict[str, Any] | None = None
    """Its answer as JSON; None without one."""
    parts: tuple[bytes, ...] = ()
    """Large parts of the answer, as raw bytes."""
    phase: str = "start"
    """Step it reached: start, import, compile or record."""
    stopped: str = ""
    """Limit it was killed for; "" if it ended by itself."""
    malformed: str = ""
    """What was wrong with a frame that it sent; empty if nothing."""
    touched: tuple[int, int] | None = None
    """(tensor, byte offset) that the launcher touched on the host; None if it touched none."""
    wait_status: int | None = None
    """Status from ``waitpid``; None if unknown."""
    output: str = ""
    """End of what it printed."""
    isolation: list[str] = field(default_factory=list)
    """Names of the protections it had."""


class Endings(list[Ending]):
    """How each build of a process ended, up to the last that it reached; never empty. ``refused``: the process would
    not run the candidate for lack of isolation."""

    refused = False

    def of(self, number: int) -> Ending:
        """Ending of one build. A build that was not reached gets the ending of the last one reached, without its
        reply."""
        return self[number] if number < len(self) else replace(self[-1], reply=None, parts=())


def bounds(limits: Limits, builds: int, assembled: int) -> dict[bytes, wire.Bound]:
    """Limits on the messages (frames) from a process that makes ``builds`` builds, or assembles ``assembled`` PTX
    texts."""
    return {
        wire.WORKLOAD: wire.Bound(_CLAIM_BYTES, builds),
        wire.PHASE: wire.Bound(_CLAIM_BYTES, builds * len(PHASES)),
        wire.TOUCHED: wire.Bound(_CLAIM_BYTES, 1),
        wire.PART: wire.Bound(limits.reply_bytes, builds * PARTS + assembled, _MANY * limits.reply_bytes),
        wire.ANSWER: wire.Bound(_ANSWER_BYTES, max(builds, 1)),
    }


class Watch:
    """Follows the builds of one process through its three pipes, and kills it if a build exceeds a limit or is
    cancelled."""

    def __init__(
        self, limits: Limits, cancel: Cancel, builds: int, assembled: int, begun: Callable[[int], None]
    ) -> None:
        self._limits, self._cancel, self._count, self._begun = limits, cancel, builds, begun
        self._ending = Ending()
        self._endings = Endings([self._ending])
        self._isolation: list[str] = []
        self._number = -1  # number of the current build
        self._started = time.monotonic()
        self._pidfd: int | None = None
        self._supervisor = 0
        self._status_text = b""
        self._output_bytes = 0
        self._tail = b""
        self._frames = wire.FrameReader(bounds(limits, builds, assembled))

    def run(self, send: Callable[[list[int]], None]) -> Endings:
        """Runs the builds. ``send`` receives the write ends of the pipes: reply, output, status."""
        pipes = [os.pipe() for _ in range(3)]
        try:
            try:
                send([w for _, w in pipes])
            finally:
                for _, w in pipes:
                    os.close(w)
            self._follow([r for r, _ in pipes])
        finally:
            for r, _ in pipes:
                os.close(r)
            if self._pidfd is not None:
                os.close(self._pidfd)
        outputs = self._tail.rsplit(wire.SEPARATOR, len(self._endings))[-len(self._endings) :]
        # The kept tail may lack the first outputs.
        for ending, output in zip(reversed(self._endings), reversed(outputs), strict=False):
            ending.output, ending.isolation = output.decode(errors="replace"), self._isolation
        return self._endings

    def _follow(self, ends: list[int]) -> None:
        handlers = dict(zip(ends, (self._on_reply, self._on_output, self._on_status), strict=True))
        with selectors.DefaultSelector() as selector:
            for fd in ends:
                selector.register(fd, selectors.EVENT_READ)
            open_ends = set(ends)
            while open_ends:
                for key, _ in selector.select(POLL_SECONDS):
                    data = os.read(key.fd, 1 << 18)
                    if data:
                        handlers[key.fd](data)
                    else:
                        selector.unregister(key.fd)
                        open_ends.discard(key.fd)
                if self._cancel.is_set():
                    self._kill()
                    raise Cancelled("stopped while compiling")
                if not self._ending.stopped:
                    self._check(time.monotonic() - self._started)
                elif time.monotonic() - self._started > self._limits.wall_seconds + 5:
                    raise CageError("a build did not end when it was killed", "Report this with the kernel's source.")

    def _check(self, seconds: float) -> None:
        over = ""
        if seconds > self._limits.wall_seconds:
            over = f"time: over {self._limits.wall_seconds:g} s while in the step {self._ending.phase!r}"
        elif self._output_bytes > self._limits.output_bytes:
            over = f"output: printed over {self._limits.output_bytes >> 20} MiB"
        elif self._ending.malformed:
            over = self._ending.malformed
        if over:
            self._ending.stopped = over
            self._kill()

    def _on_reply(self, data: bytes) -> None:
        if self._ending.malformed:
            return
        try:
            for kind, body in self._frames.feed(data):
                self._on_frame(kind, body)
        except (ValueError, TypeError) as error:
            self._ending.malformed = f"reply: {error}"

    def _on_frame(self, kind: bytes, body: bytes) -> None:
        """Handles a frame. Raises ValueError if its kind is not allowed at this point, TypeError if its body has the
        wrong shape."""
        ending = self._ending
        if kind == wire.WORKLOAD:
            self._begin(wire.decode(body))
            return
        if ending.reply is not None or (self._count and self._number < 0):
            raise ValueError(f"a frame of the kind {kind!r} outside of a build")
        if kind == wire.PHASE:
            ending.phase = _next_phase(ending.phase, wire.decode(body))
        elif kind == wire.TOUCHED:
            tensor, offset = wire.decode(body)
            ending.touched = (int(tensor), int(offset))
        elif kind == wire.PART:
            ending.parts += (body,)
        else:
            reply = wire.decode(body)
            if not isinstance(reply, dict):
                raise ValueError("a reply that is not a JSON object")
            ending.reply = reply

    def _begin(self, number: Any) -> None:
        """Starts the next build's clock. Raises ValueError if the build before has not answered."""
        unasked = type(number) is not int or number != self._number + 1 or number >= self._count
        if unasked or (number > 0 and self._ending.reply is None):
            raise ValueError(f"it begins build {str(number)[:20]} of {self._count} after build {self._number}")
        if number > 0:
            self._ending = replace(self._ending, reply=None, parts=(), phase="start")
            self._endings.append(self._ending)
        self._number, self._started = number, time.monotonic()
        self._begun(number)

    def _on_output(self, data: bytes) -> None:
        self._output_bytes += len(data)
        self._tail = (self._tail + data)[-OUTPUT_TAIL:]

    def _on_status(self, data: bytes) -> None:
        self._status_text += data
        *lines, self._status_text = self._status_text.split(b"\n")
        for line in lines:
            word, *rest = line.decode(errors="replace").split(" ")
            if word == "supervisor":
                self._supervisor = int(rest[0])
                with contextlib.suppress(OSError):
                    self._pidfd = os.pidfd_open(self._supervisor)
            elif word == "isolation":
                self._isolation += [name for name in rest[0].split(",") if name]
            elif word == "refused":
                self._endings.refused = True
            elif word == "stopped":
                self._ending.stopped = self._over(rest[0])
            elif word == "ended":
                self._ending.wait_status = int(rest[0])

    def _over(self, limit: str) -> str:
        limits = self._limits
        return {
            "memory": f"memory: over {limits.memory_bytes >> 20} MiB resident",
            "threads": f"threads: over {limits.processes}",
            "scratch": f"scratch: over {limits.scratch_bytes >> 20} MiB or {limits.scratch_files} files",
        }[limit]

    def _kill(self) -> None:
        """Kills the supervisor, and with it (by namespace or death signal) everything it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            elif self._supervisor:
                os.kill(self._supervisor, signal.SIGKILL)


def _next_phase(before: str, claimed: Any) -> str:
    if claimed not in PHASES[PHASES.index(before) + 1 if before in PHASES else 0 :]:
        raise ValueError(f"the step {str(claimed)[:20]!r} after {before!r}")
    return str(claimed)
