"""The stand-in runtime is built once, and its absence is explained."""

from __future__ import annotations

import ast
import ctypes
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.compile.standin import standin_library
from cutegen_lab.core.errors import SetupError
from tests.emulator.tma.driver_maps import LINES


def test_it_is_built_once(tmp_path: Path) -> None:
    library = standin_library(tmp_path)
    stamp = library.stat().st_mtime_ns
    assert library.name == "libcute_dsl_runtime.so"
    assert standin_library(tmp_path) == library and library.stat().st_mtime_ns == stamp
    assert list(library.parent.iterdir()) == [library]


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="Install gcc or clang"):
        standin_library(tmp_path, compilers=("no-such-compiler",))


def test_a_broken_compiler_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken-cc"
    broken.write_text("#!/bin/sh\necho 'fatal: no headers' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SetupError, match="no headers"):
        standin_library(tmp_path / "cache", compilers=(str(broken),))
    assert not list((tmp_path / "cache").rglob("*.so"))


def encoded(library: ctypes.CDLL, described: list[Any]) -> tuple[int, bytes]:
    kind, address, sizes, strides, box, steps, interleave, swizzle, l2, fill = described
    made = (ctypes.c_uint8 * 128)(*[0xAA] * 128)
    wide = [(ctypes.c_uint64 * max(len(numbers), 1))(*numbers) for numbers in (sizes, strides)]
    narrow = [(ctypes.c_uint32 * len(numbers))(*numbers) for numbers in (box, steps)]
    modes = (interleave, swizzle, l2, fill)
    status = library._cuTensorMapEncodeTiled(made, kind, len(sizes), ctypes.c_uint64(address), *wide, *narrow, *modes)
    return status, bytes(made)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return ctypes.CDLL(str(standin_library(tmp_path_factory.mktemp("standin"))))


@pytest.mark.parametrize("line", LINES, ids=[line.split(";")[0] for line in LINES])
def test_tensor_maps_are_those_of_the_driver(library: ctypes.CDLL, line: str) -> None:
    _, described, raw = (part.strip() for part in line.split(";"))
    status, made = encoded(library, [ast.literal_eval(part) for part in described.split()])
    assert status == 0 and made == bytes.fromhex(raw) + bytes(64)


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        (0, 13, "a data type"), (1, 8, "an address"), (2, [0, 64], "a size"), (3, [520], "a stride"),
        (3, [1 << 40], "a stride"), (4, [64, 257], "a box dimension"), (4, [12, 8], "rows are no multiple"),
        (4, [128, 8], "wider than its swizzle"), (5, [1, 9], "an element stride"), (7, 4, "an unknown mode"),
    ],
)  # fmt: skip
def test_what_the_driver_refuses_is_refused(library: ctypes.CDLL, at: int, value: Any, says: str) -> None:
    sound: list[Any] = [9, 1 << 40, [256, 64], [512], [64, 8], [1, 1], 0, 3, 2, 0]
    assert encoded(library, sound)[0] == 0
    library.cutegen_reset()
    sound[at] = value
    assert encoded(library, sound)[0] != 0
    library.cutegen_log.restype = ctypes.c_char_p
    assert says in library.cutegen_log(ctypes.byref(ctypes.c_int64())).decode()
