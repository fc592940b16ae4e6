"""The stand-in runtime is built once, and its absence is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.compile.standin import standin_library
from cutegen_lab.core.errors import SetupError


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
