"""Removes rights from the current process, for good: namespaces, file access, system calls, resources.

Each step is tried and reported by name; on a kernel that lacks one, the others still apply. Runs in the cage, before
any of the candidate's text is read. Sources: landlock(7), seccomp(2), user_namespaces(7), linux/audit.h.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from cutegen_lab.compile import seccomp
from cutegen_lab.compile.limits import Limits
from cutegen_lab.core.background import yield_cores

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWUTS = (
    0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x04000000,
)  # fmt: skip
PR_SET_NO_NEW_PRIVS = 38
_CAPABILITIES_VERSION, _CAP_DAC_READ_SEARCH = 0x20080522, 2
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 14, 1 << 18
_MOUNT_SETATTR, _RDONLY, _AT_RECURSIVE = 442, 1, 0x8000
_SCRATCH = ("/media", "/srv", "/mnt")
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]

# One of each pair is enough to isolate a candidate.
_WALLS = {
    "nothing keeps it from your files (no Landlock, no mount namespace)": {"landlock", "mount-ns"},
    "nothing keeps it from your processes (no seccomp, no process namespace)": {"seccomp", "pid-ns"},
}


def missing_walls(isolation: Iterable[str]) -> list[str]:
    """What a process with these isolation names could still reach, in words; empty if it may run a candidate."""
    had = set(isolation)
    return [what for what, walls in _WALLS.items() if not walls & had]


def lacking(isolation: Iterable[str]) -> list[str]:
    """In words, what isolation this machine lacks; :func:`missing_walls` says whether the rest suffices."""
    had = set(isolation)
    notes = {
        "no namespaces: Landlock and the list of system calls isolate candidates": {"pid-ns", "mount-ns", "net-ns"},
        "no Landlock: a candidate can read your files but cannot send them anywhere": {"landlock"},
        "no seccomp: a candidate can make any system call": {"seccomp"},
    }
    return [note for note, any_of in notes.items() if not any_of & had]


def unshare_namespaces() -> list[str]:
    """Gives this process's children new user, network, IPC and process namespaces. Returns the names of those
    created."""
    uid, gid = os.getuid(), os.getgid()
    wanted = {"net-ns": CLONE_NEWNET, "ipc-ns": CLONE_NEWIPC, "pid-ns": CLONE_NEWPID, "uts-ns": CLONE_NEWUTS}
    if _libc.unshare(CLONE_NEWUSER | sum(wanted.values())) == 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            try:
                Path(f"/proc/self/{name}").write_text(text)
            except OSError:
                return list(wanted)  # without a map of user ids the process runs as nobody, which is as safe
        return ["user-ns", *wanted]
    return [name for name, flag in wanted.items() if _libc.unshare(flag) == 0]


def own_mounts(needed: Sequence[str], scratch_bytes: int) -> str:
    """Makes a mount namespace in which everything is read-only except one folder, a memory disk of bounded size;
    returns its path, or "".

    The folder's path is the same for every build on every machine, because debug information contains it: the same text
    then gives the same cubin. ``needed``: paths that the folder must not hide.
    """
    spot = next((p for p in _SCRATCH if Path(p).is_dir() and not any(f"{n}/".startswith(f"{p}/") for n in needed)), "")
    if not spot or _libc.unshare(CLONE_NEWNS) or _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None):
        return ""
    options = f"size={scratch_bytes},nr_inodes=4096,mode=700".encode()
    if _libc.mount(b"tmpfs", spot.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, options):
        return ""
    read_only, writable = struct.pack("=QQQQ", _RDONLY, 0, 0, 0), struct.pack("=QQQQ", 0, _RDONLY, 0, 0)
    if _libc.syscall(_MOUNT_SETATTR, -100, b"/", _AT_RECURSIVE, read_only, len(read_only)):
        return ""
    return "" if _libc.syscall(_MOUNT_SETATTR, -100, spot.encode(), 0, writable, len(writable)) else spot


def restrict(
    limits: Limits, readable: Iterable[str], writable: str, builds: int = 1, own_user: bool = False
) -> list[str]:
    """Restricts this process to reading ``readable``, writing ``writable``, and computing within ``limits``, with CPU
    time for ``builds`` builds. ``own_user``: whether it has its own user namespace, in which its processes are counted
    separately. Returns the names of the restrictions that work."""
    done = []
    no_new_privileges = _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    if no_new_privileges:
        done.append("no-new-privs")
    yield_cores()
    _rlimits(limits, max(builds, 1), own_user)
    done.append("rlimits")
    if _landlock(readable, writable):
        done.append("landlock")
    if _drop_capabilities():
        done.append("no-capabilities")
    if no_new_privileges and seccomp.install():
        done.append("seccomp")
    return done


def _drop_capabilities() -> bool:
    """Drops root's capabilities except reading files, since Python may be installed in another user's folder."""
    header, held = struct.pack("=Ii", _CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
    if _libc.capget(header, held) != 0:
        return False
    _, permitted, *_ = struct.unpack("=6I", held.raw)
    kept = permitted & 1 << _CAP_DAC_READ_SEARCH
    return bool(_libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0)) == 0)


def allow_cpu(seconds: int) -> None:
    """Sets the soft CPU-time limit in seconds, within the hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    used = resource.getrusage(resource.RUSAGE_SELF)
    bound = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))


def _rlimits(limits: Limits, builds: int, own_user: bool) -> None:
    data = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmData")
    )
    for which, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits.cpu_seconds * builds),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        *([(resource.RLIMIT_NPROC, limits.processes)] if own_user else []),
        # DATA, not AS: unbacked tensors reserve terabytes of addresses but no memory
        (resource.RLIMIT_DATA, data + limits.memory_bytes),
    ):
        hard = resource.getrlimit(which)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # the soft CPU limit ends a process with SIGXCPU, which names the cause; the hard limit with SIGKILL
        grace = 2 if which == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(which, (bound, bound + grace))


# --- Landlock: which files ---------------------------------------------------------------------------------------

# system call numbers, the same on every architecture.
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_READ = 0b1100  # READ_FILE, READ_DIR
_FILE_ONLY = 0b111 | 1 << 14  # EXECUTE, WRITE_FILE, READ_FILE, TRUNCATE
_ABI_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_EXECUTE = 1


def _landlock(readable: Iterable[str], writable: str) -> bool:
    abi = _libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if abi < 1:
        return False
    handled = _ABI_RIGHTS[min(abi, 3)]
    ruleset_attr = struct.pack("=QQQ", handled, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _libc.syscall(_LANDLOCK_CREATE, ruleset_attr, size, 0)
    if ruleset < 0:
        return False
    try:
        rules = [(path, _READ) for path in readable] + [(writable, handled & ~_EXECUTE), ("/dev/null", _FILE_ONLY - 1)]
        for path, rights in rules:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                if not Path(path).is_dir():
                    rights &= _FILE_ONLY
                rule = struct.pack("=Qi", rights & handled, fd)
                if _libc.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0) != 0:
                    return False
            finally:
                os.close(fd)
        return bool(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)
