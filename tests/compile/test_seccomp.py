"""The filter's program, run here as the kernel would, for both architectures."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from cutegen_lab.compile import seccomp

PID = 4321
KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), r"#define __NR_(\w+) (\d+)"),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"), r"#define __NR(?:3264)?_(\w+) (\d+)"),
}
EPERM, ENOSYS = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says of a call: classic BPF, linux/filter.h."""
    code = [struct.unpack("=HBBI", each) for each in seccomp.program(machine, PID)]
    data = struct.pack("=IIQ6Q", number, audit or AUDIT[machine], 0, *arguments, *[0] * (6 - len(arguments)))
    at = word = 0
    while True:
        operation, yes, no, k = code[at]
        at += 1
        match operation:
            case 0x20:
                (word,) = struct.unpack_from("=I", data, k)
            case 0x54:
                word &= k
            case 0x15:
                at += yes if word == k else no
            case 0x35:
                at += yes if word >= k else no
            case 0x45:
                at += yes if word & k else no
            case 0x06:
                return k
            case _:
                raise AssertionError(f"operation {operation:#x}")


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_are_the_kernel_headers(machine: str) -> None:
    path, pattern = HEADERS[machine]
    if not path.exists():
        pytest.skip("no kernel headers")
    known = {name: int(number) for name, number in re.findall(pattern, path.read_text())}
    if machine == "aarch64":
        known["newfstatat"] = known["fstatat"]
    column = list(HEADERS).index(machine)
    for table in (seccomp.ALLOWED, seccomp.CHECKED, seccomp._STARTS_A_PROCESS):
        for name, numbers in table.items():
            if numbers[column] is not None:
                assert known[name] == numbers[column], name


def numbers(name: str) -> list[tuple[str, int]]:
    both = {**seccomp.ALLOWED, **seccomp.CHECKED, **seccomp._STARTS_A_PROCESS}[name]
    return [(machine, number) for machine, number in zip(AUDIT, both, strict=True) if number is not None]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("read", (0,), ALLOW),
        ("fork", (), KILL),
        ("execve", (), KILL),
        ("clone", (0x003D0F00,), ALLOW),  # pthread_create
        ("clone", (17,), KILL),  # fork
        ("clone", (0x003D0F00 | 0x40000000,), EPERM),  # with a network namespace
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (1,), EPERM),
        ("prlimit64", (1 << 32,), ALLOW),  # a pid is an int: 0
        ("tgkill", (PID, 5, 6), ALLOW),
        ("tgkill", (PID + 1, PID + 1, 9), EPERM),
        ("fcntl", (1, 1030), ALLOW),
        ("fcntl", (1, 8, PID + 1), EPERM),
        ("fcntl", (1, 8 | 1 << 32, PID + 1), EPERM),
        ("ioctl", (1, 0x5401), ALLOW),
        ("ioctl", (1, 0x5412), EPERM),  # TIOCSTI: types at the user's terminal
        ("ioctl", (1, 0x40086602), EPERM),  # FS_IOC_SETFLAGS
        ("prctl", (15,), ALLOW),
        ("prctl", (1, 0), EPERM),
        ("madvise", (0, 0, 4), ALLOW),
        ("madvise", (0, 0, 100), EPERM),
        ("openat", (0, 0, 0), ALLOW),
        ("openat", (0, 0, 0o1101), ALLOW),
        ("openat", (0, 0, 0o1000), EPERM),
        ("openat", (0, 0, 0o1003), EPERM),
        ("openat", (0, 0, 3), EPERM),
        ("openat", (0, 0, 0o20200002), EPERM),
        ("open", (0, 0o102), ALLOW),
        ("open", (0, 0o1000), EPERM),
    ],
)
def test_arguments(name: str, arguments: tuple[int, ...], expected: int) -> None:
    for machine, number in numbers(name):
        assert verdict(machine, number, *arguments) == expected, machine


@pytest.mark.parametrize("machine", AUDIT)
def test_what_is_not_listed_fails(machine: str) -> None:
    column = list(AUDIT).index(machine)
    tables = (seccomp.ALLOWED, seccomp.CHECKED, seccomp._STARTS_A_PROCESS)
    listed = {found[column] for table in tables for found in table.values()}
    said = {number: verdict(machine, number) for number in range(600) if number not in listed}
    assert len(said) > 400
    assert all(found == (ENOSYS if number >= 435 else EPERM) for number, found in said.items())


def test_other_ways_into_the_kernel_end_the_build() -> None:
    assert verdict("x86_64", 1, audit=0x40000003) == KILL  # i386
    assert verdict("x86_64", 0x40000000 | 1) == KILL  # x32
    assert verdict("aarch64", 64, audit=0x40000028) == KILL  # arm


def test_a_machine_that_is_not_listed_has_no_filter() -> None:
    assert seccomp.program("riscv64", PID) == []
