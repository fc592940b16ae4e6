"""What a candidate may not do, on machines with and without namespaces and Landlock: the payloads are native code, by
ctypes, in a module that the gate did not see."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler, CompileJob, Limits
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.verdict import Verdict
from tests.compile.conftest import ARCH, MATRIX, VECTOR, compile_one, fail_one, fail_ungated, workload
from tests.compile.denied import cage_without
from tests.compile.sources import COLUMN_SUM, READS_DATA, SCALE, TMA, with_prologue
from tests.compile.test_attacks import descendants

pytestmark = pytest.mark.kernel
MACHINES: dict[str, tuple[str, ...]] = {
    "with all": (), "no namespaces": ("namespaces",), "nothing": ("namespaces", "landlock")
}  # fmt: skip


@pytest.fixture(scope="module", params=MACHINES)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CageCompiler]:
    folder = tmp_path_factory.mktemp("machine")
    with cage_without(folder, *MACHINES[request.param], allow_weak_cage=request.param == "nothing") as compiler:
        yield compiler


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the user's. Any signal ends it."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


ACTS = """
import ctypes, errno, json, struct
libc = ctypes.CDLL(None, use_errno=True)
buffer, said = ctypes.create_string_buffer(256), {}
def act(name, *arguments):
    ctypes.set_errno(0)
    found = libc[name](*arguments)  # getattr is the guarded one there
    said[name] = "done" if found >= 0 else errno.errorcode.get(ctypes.get_errno())
"""
ON_PROCESSES = """
act("kill", VICTIM, 9)
act("tgkill", VICTIM, VICTIM, 10)
act("sigqueue", VICTIM, 10, None)
act("prlimit64", VICTIM, 0, struct.pack("=QQ", 1, 1), None)
act("setpriority", 0, VICTIM, 19)
act("sched_setscheduler", VICTIM, 3, struct.pack("=i", 0))
act("sched_setaffinity", VICTIM, 8, struct.pack("=Q", 1))
act("ptrace", 16, VICTIM, None, None)
act("process_vm_readv", VICTIM, buffer, 1, buffer, 1, 0)
act("fcntl", 1, 8, VICTIM)  # F_SETOWN: whom SIGIO, or another signal, goes to
act("prctl", 1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG: to outlive the supervisor
act("setsid")
"""
ON_METADATA = """
path = PATH.encode()
act("chmod", path, 0o777)
act("fchmodat", -100, path, 0o777, 0)
act("chown", path, 1, 1)
act("utimensat", -100, path, None, 0)
act("setxattr", path, b"user.planted", b"x", 1, 0)
act("truncate", path, 0)
act("link", path, b"linked")
act("rename", path, b"taken")
act("unlink", path)
fd = libc.open(path, 0)
for name, *arguments in (("fchmod", 0o777), ("fchown", 1, 1), ("futimens", None), ("ioctl", 0x40086602, buffer),
                         ("flock", 2)):
    if fd >= 0: act(name, fd, *arguments)
act("open", path, 0o1000)  # O_TRUNC, for reading
act("open", path, 0o1003)
"""
ON_THE_MACHINE = """
act("sethostname", b"taken", 5)
act("clock_settime", 0, buffer)
act("msgget", 0, 0o1666)
act("semget", 0, 1, 0o1666)
act("shmget", 0, 4096, 0o1666)
act("socket", 1, 1, 0)
act("memfd_create", b"x", 0)
act("mlockall", 1)
act("mkdir", b"nest", 0o777)
act("symlink", b"/", b"root")
act("inotify_init")
act("pipe2", buffer, 0o200)  # O_NOTIFICATION_PIPE
act("setrlimit", 1, struct.pack("=QQ", 1 << 62, 1 << 62))  # RLIMIT_FSIZE, beyond the hard limit
act("open", b".", 0o20200002, 0o600)  # O_TMPFILE: a file that no listing shows
"""


def done(compiler: CageCompiler, acts: str, **names: object) -> dict[str, str]:
    """What came of each act."""
    known = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    failure = fail_ungated(compiler, with_prologue(f"{ACTS}{known}{acts}\nraise ValueError('#' + json.dumps(said))"))
    return dict(json.loads(failure.reason.partition("#")[2]))


def test_other_processes_are_out_of_reach(machine: CageCompiler, victim: subprocess.Popen[bytes]) -> None:
    def state() -> object:
        pid = victim.pid
        return (resource.prlimit(pid, resource.RLIMIT_CPU), os.getpriority(os.PRIO_PROCESS, pid),
                os.sched_getscheduler(pid), os.sched_getaffinity(pid))  # fmt: skip

    before = state()
    said = done(machine, ON_PROCESSES, VICTIM=victim.pid)
    assert victim.poll() is None and state() == before
    assert len(said) == 12 and set(said.values()) == {"EPERM"}, said


def test_files_keep_their_metadata_and_contents(machine: CageCompiler, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("the user's")
    mine.chmod(0o600)
    before = mine.stat()
    said = done(machine, ON_METADATA, PATH=str(mine))
    after = mine.stat()
    for figure in ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_ctime_ns", "st_nlink"):
        assert getattr(after, figure) == getattr(before, figure), figure
    assert mine.read_text() == "the user's" and not os.listxattr(mine)
    assert set(said.values()) <= {"EPERM", "EACCES", "EROFS"}, said


def test_the_machine_stays_as_it_is(machine: CageCompiler) -> None:
    name = os.uname().nodename
    said = done(machine, ON_THE_MACHINE)
    assert os.uname().nodename == name
    assert set(said.values()) == {"EPERM"}, said


@pytest.mark.parametrize(
    ("source", "work"),
    [(SCALE, VECTOR), (COLUMN_SUM, workload("x: f32[64,32]", "y: f32[32]")), (TMA, MATRIX)],
    ids=["scale", "column sum", "tma"],
)
def test_honest_kernels_compile(machine: CageCompiler, source: str, work: object) -> None:
    assert compile_one(machine, source, work).builds  # type: ignore[arg-type]


def test_touched_data_and_threads_are_still_had(machine: CageCompiler) -> None:
    assert fail_one(machine, READS_DATA).verdict is Verdict.HOST_READS_DATA
    code = "import threading\nt = threading.Thread(target=print); t.start(); t.join()"
    result = machine.compile_ungated(CompileJob(with_prologue(code), {}, (VECTOR,), ARCH), print)
    assert isinstance(result, Artifact), result


WRITES = """
import ctypes
libc, block = ctypes.CDLL(None), bytes(1 << 20)
for number in range(1 << 20):
    fd = libc.open(b"part-%d" % number, 0o101, 0o600)
    if fd < 0: raise ValueError("no more")
    for _ in range(PARTS):
        if libc.write(fd, block, SIZE) < 0: raise ValueError("no more")
    libc.unlink(b"part-%d" % number)
    libc.close(fd)
"""


@pytest.mark.parametrize(("parts", "size"), [(60, 1 << 20), (1, 1)], ids=["bytes", "files"])
@pytest.mark.parametrize("name", MACHINES)
def test_the_disk_is_bounded(tmp_path: Path, name: str, parts: int, size: int) -> None:
    limits = Limits(wall_seconds=20.0, scratch_bytes=100 << 20, scratch_files=1000)
    most, stop = [0, 0], threading.Event()

    def look() -> None:
        while not stop.wait(0.002):
            with suppress(OSError):
                found = [path.stat() for path in (tmp_path / "scratch").rglob("part-*")]
                most[:] = max(most[0], sum(each.st_size for each in found)), max(most[1], len(found))

    looking = threading.Thread(target=look)
    looking.start()
    code = f"PARTS, SIZE = {parts}, {size}\n{WRITES}"
    with cage_without(tmp_path, *MACHINES[name], limits=limits, allow_weak_cage=True) as compiler:
        failure = fail_ungated(compiler, with_prologue(code))
        assert not list((tmp_path / "scratch").rglob("part-*"))
    stop.set()
    looking.join()
    if name == "with all":  # a file system of its own is full
        assert "no more" in failure.reason and not any(most)
    else:
        assert failure.verdict is Verdict.COMPILE_LIMIT and "scratch: over 100 MiB or 1000 files" in failure.reason
        assert most[0] < 1 << 30 and most[1] < 20_000


def test_threads_are_bounded(machine: CageCompiler) -> None:
    code = "import threading, time\nfor _ in range(2000): threading.Thread(target=time.sleep, args=(9,)).start()\n"
    failure = fail_ungated(machine, with_prologue(code))
    assert "threads: over 64" in failure.reason or "can't start new thread" in failure.reason, failure


def test_nothing_is_left_of_a_build_whose_supervisor_is_killed(machine: CageCompiler) -> None:
    """The candidate is deaf to all but SIGKILL, which it cannot turn off."""
    code = ("import signal, time, ctypes\nctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\nwhile True: time.sleep(9)")  # fmt: skip
    before, seen, stop = descendants(), set(), threading.Event()

    def look() -> None:
        while not stop.wait(0.1):
            seen.update(descendants() - before)

    looking = threading.Thread(target=look)
    looking.start()
    assert fail_ungated(machine, with_prologue(code)).verdict is Verdict.COMPILE_TIMEOUT
    stop.set()
    looking.join()
    assert len(seen) >= 3  # supervisor, first process, build
    until = time.monotonic() + 2.0
    while (left := {pid for pid in seen if Path(f"/proc/{pid}").exists()}) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def test_without_walls_no_candidate_is_run(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    code = with_prologue(f"open({str(planted)!r}, 'w')")
    with cage_without(tmp_path / "cache", "namespaces", "landlock") as compiler:
        with pytest.raises(SetupError, match="nothing keeps it from your files") as raised:
            compiler.compile_ungated(CompileJob(code, {}, (VECTOR,), ARCH), print)
        assert "allow a weak cage" in raised.value.action  # the front ends say how
        assert not planted.exists()
