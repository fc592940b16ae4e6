"""Machines that lack isolation: a seccomp filter fails some of the calls that make it, as containers do.

``cage_without`` gives a compiler whose server begins under such a filter; the test's own process is left alone.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cutegen_lab.compile import CageCompiler, Limits, pool
from tests.compile.conftest import ARCH

_EPERM, _ENOSYS = 1, 38
CALLS = {  # group: ((x86_64, aarch64), error)
    "namespaces": (((272, 97), _EPERM), ((435, 435), _ENOSYS)),  # unshare, clone3: Docker's default
    "landlock": (((444, 444), _ENOSYS), ((445, 445), _ENOSYS), ((446, 446), _ENOSYS)),
}
_DENY = """
import ctypes, struct
def deny(calls):
    one = lambda code, k, yes=0, no=0: struct.pack("=HBBI", code, yes, no, k)
    program = [one(0x20, 0)]
    for number, error in calls:
        program += [one(0x15, number, 0, 1), one(0x06, 0x00050000 | error)]
    program.append(one(0x06, 0x7FFF0000))
    text = ctypes.create_string_buffer(b"".join(program))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    assert libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(text))), 0, 0) == 0
"""  # noqa: E501


def boot_without(*groups: str) -> str:
    """Python that takes away what makes ``groups``, for its process and all that it starts."""
    column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
    calls = [(numbers[column], error) for group in groups for numbers, error in CALLS[group]]
    return f"{_DENY}\ndeny({calls})\n"


@contextmanager
def cage_without(
    folder: Path, *groups: str, limits: Limits | None = None, allow_weak_cage: bool = False
) -> Iterator[CageCompiler]:
    limits = limits or Limits(wall_seconds=6.0)
    with CageCompiler(folder, 1, limits, allow_weak_cage) as compiler:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pool, "_BOOT", boot_without(*groups) + pool._BOOT)
            compiler.wake(ARCH)
        had = compiler.isolation_report()
        assert ("user-ns" in had) == ("namespaces" not in groups), "the filter did not hold"
        assert "landlock" not in had or "landlock" not in groups
        yield compiler
