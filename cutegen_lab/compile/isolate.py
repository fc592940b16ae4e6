"""Takes rights away from the current process, for good: namespaces, file access, system calls, resources.

Each step is tried and reported by name; a kernel that lacks one leaves the others standing. Runs in the cage, before
any of the candidate's text is read. Sources: landlock(7), seccomp(2), user_namespaces(7), linux/audit.h.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import platform
import resource
import signal
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from cutegen_lab.compile.limits import Limits

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWUTS = (
    0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x04000000,
)  # fmt: skip
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 14, 1 << 18
_MOUNT_SETATTR, _RDONLY, _AT_RECURSIVE = 442, 1, 0x8000
_SCRATCH = ("/media", "/srv", "/mnt")
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]


def unshare_namespaces() -> list[str]:
    """Own user, network, IPC and process namespaces for this process's children. Names those that were had."""
    uid, gid = os.getuid(), os.getgid()
    wanted = {"net-ns": CLONE_NEWNET, "ipc-ns": CLONE_NEWIPC, "pid-ns": CLONE_NEWPID, "uts-ns": CLONE_NEWUTS}
    if _libc.unshare(CLONE_NEWUSER | sum(wanted.values())) == 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            try:
                Path(f"/proc/self/{name}").write_text(text)
            except OSError:
                return list(wanted)  # unmapped: the process is nobody, which is no worse
        return ["user-ns", *wanted]
    return [name for name, flag in wanted.items() if _libc.unshare(flag) == 0]


def own_mounts(needed: Sequence[str], scratch_bytes: int) -> str:
    """A mount namespace in which all is read-only but one folder, a memory disk of bounded size: its path, or "".

    The folder is the same for every build on every machine that has it, because its name ends up in debug information:
    so the same text gives the same cubin. ``needed`` are paths it must not cover.
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


def die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def restrict(limits: Limits, readable: Iterable[str], writable: str, builds: int = 1) -> list[str]:
    """What is left after this: reading ``readable``, writing ``writable``, computing within ``limits``, of time what
    ``builds`` of them may take."""
    done = []
    no_new_privileges = _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    if no_new_privileges:
        done.append("no-new-privs")
    _rlimits(limits, max(builds, 1))
    done.append("rlimits")
    if _landlock(readable, writable):
        done.append("landlock")
    if no_new_privileges and _seccomp():
        done.append("seccomp")
    return done


def allow_cpu(seconds: int) -> None:
    """So many from now on, within the hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    used = resource.getrusage(resource.RUSAGE_SELF)
    bound = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))


def _rlimits(limits: Limits, builds: int) -> None:
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
        (resource.RLIMIT_NPROC, limits.processes),
        # DATA and not AS: unbacked tensors are terabytes of addresses and no memory
        (resource.RLIMIT_DATA, data + limits.memory_bytes),
    ):
        hard = resource.getrlimit(which)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # a soft CPU limit ends with SIGXCPU, which can be named; the hard one with a bare SIGKILL
        grace = 2 if which == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(which, (bound, bound + grace))


# --- Landlock: which files ---------------------------------------------------------------------------------------

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture
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


# --- seccomp: which system calls ------------------------------------------------------------------------------------

_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_CLONE_THREAD = 0x00010000
# name: (x86_64, aarch64); None where the architecture has no such call
_STARTS_A_PROCESS = {"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)}
_DENIED = {
    "socket": (41, 198), "socketpair": (53, 199), "ptrace": (101, 117), "kill": (62, 129), "tkill": (200, 130),
    "setsid": (112, 157), "setpgid": (109, 154), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97),
    "setns": (308, 268), "bpf": (321, 280), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "io_uring_setup": (425, 425), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "memfd_create": (319, 279), "shmget": (29, 194), "open_by_handle_at": (304, 265), "mount_setattr": (442, 442),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), (435, 435)
_AUDIT_ARCH = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def _seccomp() -> bool:
    """Starting a process kills the caller (SIGSYS, which the supervisor names); threads stay allowed."""
    if platform.machine() not in _AUDIT_ARCH:
        return False
    column, audit = _AUDIT_ARCH[platform.machine()]

    def one(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, k)

    load, jump_equal, jump_bits, jump_at_least, ret = 0x20, 0x15, 0x45, 0x35, 0x06
    program = [one(load, 4), one(jump_equal, audit, 1, 0), one(ret, _KILL), one(load, 0)]
    if column == 0:  # the x32 ABI would be a way around the numbers
        program += [one(jump_at_least, 0x40000000, 0, 1), one(ret, _KILL)]

    def on(numbers: tuple[int | None, int | None], action: int) -> list[bytes]:
        number = numbers[column]
        return [] if number is None else [one(jump_equal, number, 0, 1), one(ret, action)]

    for numbers in _STARTS_A_PROCESS.values():
        program += on(numbers, _KILL)
    for numbers in _DENIED.values():
        program += on(numbers, _ERRNO | errno.EPERM)
    program += on(_CLONE3, _ERRNO | errno.ENOSYS)  # flags are behind a pointer; libc falls back to clone
    clone = _CLONE[column]
    program += [one(jump_equal, clone, 0, 4), one(load, 16), one(jump_bits, _CLONE_THREAD, 1, 0), one(ret, _KILL)]
    program += [one(ret, _ALLOW), one(ret, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(program))
    filter_program = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    return bool(_libc.prctl(PR_SET_SECCOMP, 2, filter_program, 0, 0) == 0)
