"""The warm compile server: imports the DSL once, then forks a caged child for each build.

Started by :mod:`cutegen_lab.compile.pool` with an explicit environment. Over its socket it receives one frame a build
together with three descriptors (reply, output, status); it runs no candidate code itself. Each build is two processes:
a supervisor, which owns the namespaces and reports how the build ended, and the build. Killing the supervisor ends
everything below it.

The status descriptor carries lines: ``supervisor <pid>``, ``isolation <names>``, ``ended <wait status> <max RSS KiB>``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import sys
from typing import Any

from cutegen_lab.compile import dsl, isolate
from cutegen_lab.compile.wire import encode

MAX_JOB_BYTES = 8 << 20


def main(fd: int) -> None:
    channel = socket.socket(fileno=fd)
    isolate.die_with_parent()
    dsl.warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are reaped by the kernel
    channel.sendall(encode({"ready": os.getpid(), "archs": dsl.known_archs()}))
    while True:
        received = _receive(channel)
        if received is None:
            return
        job, fds = received
        if "resolve" in job:
            channel.sendall(encode({"missing": dsl.missing_names(job["resolve"])}))
        elif os.fork() == 0:
            _supervise(job, fds, channel)
        for each in fds:
            os.close(each)


def _receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    header, fds, _, _ = socket.recv_fds(channel, 4, 3)
    if len(header) < 4:
        return None
    (size,) = struct.unpack(">I", header)
    if size > MAX_JOB_BYTES:
        return None
    body = b""
    while len(body) < size:
        part = channel.recv(size - len(body))
        if not part:
            return None
        body += part
    return json.loads(body), list(fds)


def _supervise(job: dict[str, Any], fds: list[int], channel: socket.socket) -> None:
    """Never returns."""
    try:
        reply, output, status = fds
        channel.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        isolate.die_with_parent()
        os.write(status, f"supervisor {os.getpid()}\n".encode())
        had = isolate.unshare_namespaces()
        os.write(status, f"isolation {','.join(had)}\n".encode())
        child = os.fork()
        if child == 0:
            _build(job, reply, output, status)
        os.close(reply)
        os.close(output)
        _, wait_status = os.waitpid(child, 0)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(status, f"ended {wait_status} {usage.ru_maxrss}\n".encode())
    finally:
        os._exit(0)


def _build(job: dict[str, Any], reply: int, output: int, status: int) -> None:
    """Never returns."""
    code = 70
    try:
        isolate.die_with_parent()
        os.close(status)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        from cutegen_lab.compile.child import run

        run(job, reply)
        code = 0
    except BaseException as error:
        print(f"the build ended with {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
