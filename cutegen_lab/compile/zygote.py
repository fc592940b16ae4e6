"""The warm compile server: imports the DSL once, then forks a caged child for each build.

Started by :mod:`cutegen_lab.compile.pool` with an explicit environment. On its socket it receives one frame for each
build together with three descriptors (reply, output, status). It runs no candidate code itself, and ends when its
socket closes. Each build is three processes: a supervisor, which makes the namespaces and watches memory; PID 1 of
those namespaces, which reports how the build ended; and the build. (PID 1 of a namespace ignores default signals, so it
cannot be the build.) Killing the supervisor ends everything below it.

The status descriptor carries lines: ``supervisor <pid>``, ``isolation <names>`` (of the supervisor, then of the build),
``refused`` (the candidate was not run, for lack of isolation), ``stopped <limit>``, ``ended <wait status>``. The build
closes it before it reads any of the candidate's text.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from cutegen_lab.compile import dsl, isolate
from cutegen_lab.compile.changes import Changes, Snapshot
from cutegen_lab.compile.usage import Usage
from cutegen_lab.compile.wire import HEADER, JOB, RESPONSE, encode
from cutegen_lab.core.forks import die_with_parent

MAX_JOB_BYTES = 8 << 20
POLL_SECONDS = 0.02


def main(fd: int) -> None:
    """Serves requests on the socket ``fd`` until it closes."""
    channel = socket.socket(fileno=fd)
    dsl.warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are reaped by the kernel
    channel.sendall(encode(RESPONSE, {"ready": os.getpid(), "archs": dsl.known_archs()}))
    changes = Snapshot().changes
    while True:
        received = _receive(channel)
        if received is None:
            return
        job, fds = received
        if "resolve" in job:
            channel.sendall(encode(RESPONSE, {"missing": dsl.missing_names(job["resolve"])}))
        elif os.fork() == 0:
            _supervise(job, fds, channel, changes)
        for each in fds:
            os.close(each)


def _receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    header, fds, _, _ = socket.recv_fds(channel, HEADER, 3)
    if len(header) < HEADER:
        return None
    kind, size = struct.unpack(">cI", header)
    if kind != JOB or size > MAX_JOB_BYTES:
        return None
    body = b""
    while len(body) < size:
        part = channel.recv(size - len(body))
        if not part:
            return None
        body += part
    return json.loads(body), list(fds)


def _supervise(job: dict[str, Any], fds: list[int], channel: socket.socket, changes: Changes) -> None:
    """The supervisor. Never returns."""
    try:
        reply, output, status = fds
        channel.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        die_with_parent()
        os.write(status, f"supervisor {os.getpid()}\n".encode())
        had = isolate.unshare_namespaces()
        spot = isolate.own_mounts(
            [*sys.path, sys.prefix, sys.base_prefix, job["standin"]], job["limits"]["scratch_bytes"]
        )
        if spot:
            had.append("mount-ns")
            job["scratch"] = spot
        job["isolation"] = had
        os.write(status, f"isolation {','.join(had)}\n".encode())
        first = os.fork()
        if first == 0:
            _first_process(job, reply, output, status, changes)
        os.close(reply)
        os.close(output)
        _watch(first, Usage(job["limits"], "" if spot else job["scratch"]), status)
    finally:
        os._exit(0)


def _watch(first: int, usage: Usage, status: int) -> None:
    """Waits until PID 1 ends, or the build exceeds a limit that the kernel does not enforce."""
    build = 0
    while not _ended(first):
        build = build or _child_of(first)
        if over := usage.over(build):
            os.write(status, f"stopped {over}\n".encode())
            os.kill(first, signal.SIGKILL)


def _ended(pid: int) -> bool:
    """Waits briefly for a child of this process, and reaps it."""
    try:
        ended = os.pidfd_open(pid)
    except OSError:  # sandboxes without pidfds
        time.sleep(POLL_SECONDS)
    else:
        select.select([ended], [], [], POLL_SECONDS)
        os.close(ended)
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def _child_of(parent: int) -> int:
    """Pid of the child of ``parent``, as seen from this namespace; 0 if there is none yet."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rsplit(") ", 1)[1].split()[1]) == parent:
                return int(path.parent.name)
        except (OSError, IndexError, ValueError):
            continue
    return 0


def _first_process(job: dict[str, Any], reply: int, output: int, status: int, changes: Changes) -> None:
    """PID 1 of the namespaces. Never returns."""
    try:
        die_with_parent()
        build = os.fork()
        if build == 0:
            _build(job, reply, output, status, changes)
        os.close(reply)
        os.close(output)
        _, wait_status = os.waitpid(build, 0)
        os.write(status, f"ended {wait_status}\n".encode())
    finally:
        os._exit(0)


def _build(job: dict[str, Any], reply: int, output: int, status: int, changes: Changes) -> None:
    """The build. Never returns."""
    code = 70
    try:
        die_with_parent()
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        from cutegen_lab.compile.child import run

        run(job, reply, status, changes)
        code = 0
    except BaseException as error:
        print(f"the build ended with {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
