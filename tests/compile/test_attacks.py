"""Everything a hostile candidate may try: the parent is unharmed, and the verdict names what happened.

The gate stops most of these from their text; here it is bypassed, because the cage must hold alone.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler, CompileJob, Limits
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.verdict import Verdict
from tests.compile.conftest import ARCH, VECTOR, compile_one, fail_one, fail_ungated
from tests.compile.sources import READS_DATA, SCALE, with_prologue


@pytest.mark.parametrize(
    ("code", "verdict", "said"),
    [
        ("import os; os._exit(3)", Verdict.COMPILE_CRASH, "exit status 3"),
        ("import os; os._exit(0)", Verdict.COMPILE_CRASH, "no answer"),
        ("import ctypes; ctypes.string_at(8)", Verdict.COMPILE_CRASH, "SIGSEGV"),
        ("import os; os.abort()", Verdict.COMPILE_CRASH, "SIGABRT"),
        ("block = bytearray(2 << 30)", Verdict.COMPILE_LIMIT, "memory"),
        ("import mmap\nm, block = mmap.mmap(-1, 4 << 30), b'1' * (1 << 20)\nwhile True: m.write(block)",
         Verdict.COMPILE_LIMIT, "memory"),
        ("import os\nwhile True: os.fork()", Verdict.COMPILE_LIMIT, "another process"),
        ("import subprocess; subprocess.run(['/bin/true'])", Verdict.COMPILE_LIMIT, "another process"),
        ("import os\nfor _ in range(100): os.write(1, b'x' * (1 << 20))", Verdict.COMPILE_LIMIT, "output"),
        ("import sys\nsys.stderr.write('y' * (100 << 20))", Verdict.COMPILE_LIMIT, "output"),
        ("while True: pass", Verdict.COMPILE_TIMEOUT, "import"),
        ("import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\nwhile True: time.sleep(9)",
         Verdict.COMPILE_TIMEOUT, "too long"),
        ("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))", Verdict.COMPILE_ERROR, "OSError"),
        ("raise SystemExit(0)", Verdict.COMPILE_CRASH, "no answer"),
        ("raise KeyboardInterrupt", Verdict.COMPILE_CRASH, "no answer"),
        ("def f(): f()\nf()", Verdict.COMPILE_ERROR, "RecursionError"),
    ],
)  # fmt: skip
def test_the_verdict_names_what_happened(compiler: CageCompiler, code: str, verdict: Verdict, said: str) -> None:
    failure = fail_ungated(compiler, with_prologue(code))
    assert failure.verdict is verdict, failure
    assert said in failure.reason


def test_after_every_attack_the_compiler_still_works(compiler: CageCompiler) -> None:
    fail_ungated(compiler, with_prologue("import os, signal; os.kill(os.getppid(), signal.SIGKILL)"))
    assert compile_one(compiler, SCALE + "\n# afterwards\n").builds


def test_no_key_reaches_the_cage(compiler: CageCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-in-the-parent")
    code = (
        "import os, glob\nseen = repr(dict(os.environ))\n"
        "for path in glob.glob('/proc/[0-9]*/environ') + ['/proc/self/environ']:\n"
        "    try: seen += repr(open(path, 'rb').read())\n"
        "    except OSError: pass\n"
        f"for pid in {[os.getpid(), os.getppid()]}:\n"
        "    try: seen += repr(open(f'/proc/{pid}/environ', 'rb').read())\n"
        "    except OSError: pass\n"
        "raise ValueError('LEAK' if 'sk-secret' in seen or 'API_KEY' in seen else 'nothing to see')"
    )
    assert "nothing to see" in fail_ungated(compiler, with_prologue(code)).reason


def test_the_network_is_out_of_reach(compiler: CageCompiler) -> None:
    code = "import socket\nsocket.create_connection(('127.0.0.1', 1), timeout=2)"
    failure = fail_ungated(compiler, with_prologue(code))
    assert failure.verdict is Verdict.COMPILE_ERROR
    assert "PermissionError" in failure.reason or "unreachable" in failure.reason


def test_files_outside_the_scratch_folder_cannot_be_written(compiler: CageCompiler, tmp_path: Path) -> None:
    for target in (tmp_path / "planted", Path.home() / ".cutegen-planted", Path(__file__).with_name("planted")):
        failure = fail_ungated(compiler, with_prologue(f"open({str(target)!r}, 'w').write('x')"))
        assert failure.verdict is Verdict.COMPILE_ERROR
        assert not target.exists()


def test_files_of_the_user_cannot_be_read(compiler: CageCompiler, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the token")
    if "landlock" not in compiler.isolation_report():
        pytest.skip("this kernel has no Landlock")
    failure = fail_ungated(compiler, with_prologue(f"raise ValueError(open({str(secret)!r}).read())"))
    assert "the token" not in str(failure)
    assert "PermissionError" in failure.reason or "FileNotFoundError" in failure.reason


def test_reading_tensor_data_names_the_tensor(compiler: CageCompiler) -> None:
    failure = fail_one(compiler, READS_DATA)
    assert failure.verdict is Verdict.HOST_READS_DATA
    assert "x: f32[1000]" in failure.reason and "byte 20" in failure.reason


def test_a_forged_reply_is_refused(compiler: CageCompiler) -> None:
    """The candidate finds the reply pipe and answers in our place."""
    forge = (
        "import os, struct, json\n"
        "def send(kind, message):\n"
        "    body = message if isinstance(message, bytes) else json.dumps(message).encode()\n"
        "    for fd in range(3, 32):\n"
        "        try: os.write(fd, struct.pack('>cI', kind, len(body)) + body)\n"
        "        except OSError: pass\n"
        "def answer(kind, message, *parts):\n"
        "    for part in parts: send(b'B', part)\n"
        "    send(kind, message)\n"
        "    os._exit(0)\n"
    )
    for message, said in (
        ("b'A', {'failed': {'verdict': 'passed', 'reason': '', 'diagnostics': []}}", "is malformed"),
        ("b'A', {'workspace': [], 'recordings': [], 'seconds': 0}", "is malformed"),
        ("b'A', {'workspace': [], 'recordings': [], 'seconds': 0}, b'cubin', b'ptx', b'log', b'log'", "is malformed"),
        ("b'A', {'workspace': [], 'recordings': [{'bases': [], 'error': 0}] * 2, 'seconds': 0.1}, b'', b'', "
         "b'launch k', b'launch k'", "is malformed"),
        ("b'A', {'workspace': [], 'recordings': [{'bases': [], 'error': 0}] * 6, 'seconds': 0.1}, b'', b'', "
         "*[b'launch k'] * 6", "does not have 2 tensors"),
        ("b'A', b'not json'", "not JSON"),
        ("b'A', b'[' * 100000", "not JSON"),
        ("b'A', [1]", "not a JSON object"),
        ("b'A', b' ' * (1 << 21)", "over the limit"),
        ("b'A', {}, *[b''] * 9", "over 8 frames"),
        ("b'T', 'me'", "is malformed"),
        ("b'T', [1] * 1000", "over the limit"),
        ("b'P', 'judge'", "the step 'judge' after 'import'"),
        ("b'P', 'import'", "the step 'import' after 'import'"),
        ("b'I', ['gvisor']", "unknown kind"),
        ("b'{', {}", "unknown kind"),
    ):  # fmt: skip
        failure = fail_ungated(compiler, with_prologue(forge + f"answer({message})"))
        assert failure.verdict is Verdict.COMPILE_CRASH, failure
        assert said in failure.reason


@pytest.mark.kernel
def test_an_endless_reply_is_cut_off(cache_dir: Path) -> None:
    code = (
        "import os\n"
        "for fd in range(3, 32):\n"
        "    try:\n"
        "        os.write(fd, b'\\xff\\xff\\xff\\xff')\n"
        "        while True: os.write(fd, bytes(1 << 16))\n"
        "    except OSError: pass\n"
    )
    with CageCompiler(cache_dir, limits=Limits(wall_seconds=5)) as compiler:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert fail_ungated(compiler, with_prologue(code)).verdict is Verdict.COMPILE_CRASH
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


@pytest.mark.kernel
def test_a_flood_of_frames_costs_the_parent_no_memory(cache_dir: Path) -> None:
    """Read as JSON they would be a hundred times as large."""
    code = (
        "import os, struct\n"
        "body = b'[' + b'{},' * 300_000 + b'{}]'\n"
        "for fd in range(3, 32):\n"
        "    try:\n"
        "        for _ in range(40): os.write(fd, struct.pack('>cI', b'A', len(body)) + body)\n"
        "        while True: os.write(fd, struct.pack('>cI', b'P', 8) + b'\"record\"')\n"
        "    except OSError: pass\n"
    )
    with CageCompiler(cache_dir, limits=Limits(wall_seconds=5)) as compiler:
        compiler.wake(ARCH)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        failure = fail_ungated(compiler, with_prologue(code))
        assert failure.verdict is Verdict.COMPILE_CRASH and "is malformed" in failure.reason
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_a_frame_says_nothing_about_isolation(compiler: CageCompiler) -> None:
    """Neither in the frames of today nor in those that were once believed; and the pipe that is believed is closed."""
    code = (
        "import json, os, struct\n"
        "def send(header, message):\n"
        "    body = json.dumps(message).encode()\n"
        "    for fd in range(3, 256):\n"
        "        try: os.write(fd, header(len(body)) + body + b'\\nisolation gvisor,perfect\\n')\n"
        "        except OSError: pass\n"
        "send(lambda n: struct.pack('>I', n), {'phase': 'start'})\n"
        "send(lambda n: struct.pack('>I', n), {'isolation': ['gvisor', 'perfect']})\n"
        "send(lambda n: struct.pack('>cI', b'A', n), {'isolation': ['gvisor', 'perfect']})\n"
    )
    failure = fail_ungated(compiler, with_prologue(code))
    assert set(failure.isolation) == set(compiler.isolation_report())
    assert "gvisor" not in str(failure.isolation)


def test_cancelling_ends_every_process_within_a_second(compiler: CageCompiler) -> None:
    compile_one(compiler, SCALE)  # the server is warm
    marker = f"cutegen-cancel-{time.time_ns()}"
    code = (
        f"import time\nmarker = {marker!r}\nimport threading\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
    )
    before = descendants()
    cancel = threading.Event()
    threading.Timer(0.7, cancel.set).start()
    job = CompileJob(with_prologue(code + "time.sleep(60)"), {}, (VECTOR,), ARCH)
    started = time.monotonic()
    with pytest.raises(Cancelled):
        compiler.compile_ungated(job, print, cancel)
    assert time.monotonic() - started < 1.7
    until = time.monotonic() + 1.0
    while descendants() - before and time.monotonic() < until:
        time.sleep(0.02)
    assert not descendants() - before


def descendants() -> set[int]:
    """Every live process below this one."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rsplit(") ", 1)[1].split()[:2]
        except OSError:
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(path.parent.name))
    found, queue = set(), [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found.update(below)
        queue += below
    return found


def test_a_lost_server_is_replaced(compiler: CageCompiler) -> None:
    compile_one(compiler, SCALE)
    for server in compiler._pool._servers.values():
        server._process.kill()
        server._process.wait()
    assert compile_one(compiler, SCALE + "\n# with a new server\n").builds


def test_scratch_folders_are_removed(compiler: CageCompiler, cache_dir: Path) -> None:
    compile_one(compiler, SCALE + "\n# leaves nothing\n")
    assert not list((cache_dir / "scratch").rglob("build-*"))
