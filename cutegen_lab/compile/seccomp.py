"""Filters a build's system calls: allows those that compiling needs, with the arguments that it needs.

Starting a process kills the caller (SIGSYS, which the supervisor names). Any other call that is not listed fails with
EPERM, or with ENOSYS if it is so new that libraries fall back without it. No allowed call changes a file's metadata,
reaches another process, or removes a file (so that listing its folder counts all that a build wrote). Sources:
seccomp(2), linux/audit.h, linux/filter.h, the calls' own manual pages.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable

PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_AUDIT_ARCH = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000
_NEW = 435  # clone3 and later calls: libraries fall back without them

# name: (x86_64, aarch64); None where the architecture has no such call
_Numbers = tuple[int | None, int | None]
_STARTS_A_PROCESS: dict[str, _Numbers] = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
}  # fmt: skip
ALLOWED: dict[str, _Numbers] = {
    # Files, as far as Landlock and the mounts allow.
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "close": (3, 57), "close_range": (436, 436), "lseek": (8, 62), "fstat": (5, 80),
    "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "ftruncate": (77, 46),
    "getcwd": (79, 17), "statfs": (137, 43), "fstatfs": (138, 44),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "brk": (12, 214),
    # this process and its threads
    "futex": (202, 98), "exit": (60, 93), "exit_group": (231, 94), "set_robust_list": (273, 99),
    "set_tid_address": (218, 96), "rseq": (334, 293), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
    "gettid": (186, 178), "getpid": (39, 172), "getppid": (110, 173), "arch_prctl": (158, None),
    "membarrier": (324, 283), "restart_syscall": (219, 128), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    # Clocks and system information.
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101),
    "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153), "getrusage": (98, 165),
    "getrlimit": (97, 163), "uname": (63, 160), "sysinfo": (99, 179), "getrandom": (318, 278), "getcpu": (309, 168),
    # waiting
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "pipe": (22, None),
}  # fmt: skip
# Allowed with some arguments only.
CHECKED: dict[str, _Numbers] = {
    "open": (2, None), "openat": (257, 56), "fcntl": (72, 25), "ioctl": (16, 29), "madvise": (28, 233),
    "prctl": (157, 167), "prlimit64": (302, 261), "tgkill": (234, 131), "clone": (56, 220),
    "pipe2": (293, 59),
}  # fmt: skip

_FCNTL = (0, 1, 2, 3, 4, 1030)  # F_DUPFD to F_SETFL, F_DUPFD_CLOEXEC: not F_SETOWN, by which signals can be sent
_IOCTL = (0x5401, 0x5413, 0x5421, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONBIO, FIONCLEX, FIOCLEX
# PR_SET_NAME, PR_GET_NAME: not PR_SET_PDEATHSIG, by which a build could outlive its supervisor.
_PRCTL = (15, 16)
_MADVISE = 64  # from 64 on: refused, since root could damage pages for all who map them (MADV_HWPOISON)
_O_ACCMODE, _O_TRUNC, _O_TMPFILE = os.O_ACCMODE, os.O_TRUNC, os.O_TMPFILE & ~os.O_DIRECTORY
_CLONE_THREAD, _CLONE_NEW_ANYTHING = 0x00010000, 0x7E020000

_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_LOAD, _AND, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06


def install() -> bool:
    """Installs the filter for this process and its threads, for good. Needs no_new_privs. False if the machine lacks
    seccomp."""
    code = program(platform.machine(), os.getpid())
    if not code:
        return False
    text = ctypes.create_string_buffer(b"".join(code))
    filter_program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(text)))
    return bool(ctypes.CDLL(None).prctl(PR_SET_SECCOMP, _MODE_FILTER, filter_program, 0, 0) == 0)


def program(machine: str, pid: int) -> list[bytes]:
    """The filter's instructions; none for a machine whose calls are not listed."""
    if machine not in _AUDIT_ARCH:
        return []
    column, audit = _AUDIT_ARCH[machine]
    code = [_one(_LOAD, 4), _one(_JUMP_EQUAL, audit, 1), _return(_KILL), _one(_LOAD, 0)]
    if column == 0:  # calls of the x32 ABI have other numbers and would bypass the list
        code += [_one(_JUMP_AT_LEAST, _X32, 0, 1), _return(_KILL)]
    checks = _checks(pid)
    for names, body in (
        *((numbers, [_return(_ALLOW)]) for numbers in ALLOWED.values()),
        *((numbers, checks[name]) for name, numbers in CHECKED.items()),
        *((numbers, [_return(_KILL)]) for numbers in _STARTS_A_PROCESS.values()),
    ):
        number = names[column]
        if number is not None:
            code += [_one(_JUMP_EQUAL, number, 0, len(body)), *body]
    return [*code, _one(_JUMP_AT_LEAST, _NEW, 0, 1), _refuse(errno.ENOSYS), _refuse(errno.EPERM)]


def _checks(pid: int) -> dict[str, list[bytes]]:
    """Instructions that check the arguments of each call in ``CHECKED``. These are C ints, or flags in the low 32
    bits."""
    return {
        "open": _opening(1),
        "openat": _opening(2),
        "fcntl": _one_of(1, _FCNTL),
        "ioctl": _one_of(1, _IOCTL),
        "madvise": [_argument(2), _one(_JUMP_AT_LEAST, _MADVISE, 0, 1), _refuse(), _return(_ALLOW)],
        "prctl": _one_of(0, _PRCTL),
        "prlimit64": _one_of(0, (0,)),
        "tgkill": _one_of(0, (pid,)),
        "pipe2": _one_of(1, (0, os.O_CLOEXEC, os.O_NONBLOCK, os.O_CLOEXEC | os.O_NONBLOCK)),
        "clone": [
            _argument(0), _one(_JUMP_BITS, _CLONE_THREAD, 1), _return(_KILL),
            _one(_JUMP_BITS, _CLONE_NEW_ANYTHING, 0, 1), _refuse(), _return(_ALLOW),
        ],
    }  # fmt: skip


def _opening(argument: int) -> list[bytes]:
    """Instructions that check the flags of open: no unnamed file, which a listing does not show, and no truncation of a
    file that is not opened for writing, which Landlock before version 3 does not check."""
    return [
        _argument(argument), _one(_JUMP_BITS, _O_TMPFILE, 6), _one(_AND, _O_ACCMODE),
        _one(_JUMP_EQUAL, _O_ACCMODE, 4), _one(_JUMP_EQUAL, os.O_RDONLY, 0, 2),
        _argument(argument), _one(_JUMP_BITS, _O_TRUNC, 1), _return(_ALLOW), _refuse(),
    ]  # fmt: skip


def _one_of(argument: int, values: Iterable[int]) -> list[bytes]:
    allowed = [part for value in values for part in (_one(_JUMP_EQUAL, value, 0, 1), _return(_ALLOW))]
    return [_argument(argument), *allowed, _refuse()]


def _argument(index: int) -> bytes:
    """Loads the low 32 bits of an argument."""
    return _one(_LOAD, 16 + 8 * index)


def _return(action: int) -> bytes:
    return _one(_RETURN, action)


def _refuse(number: int = errno.EPERM) -> bytes:
    return _return(_ERRNO | number)


def _one(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
    """One ``struct sock_filter``."""
    return struct.pack("=HBBI", code, yes, no, k)
