"""The build cache: what lasts, what is dropped, how much it holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cutegen_lab.compile.cache import BuildCache
from cutegen_lab.core.artifact import CompileFailure
from cutegen_lab.core.verdict import Diagnostic, Verdict


def failure(verdict: Verdict, code: str = "X") -> CompileFailure:
    return CompileFailure(verdict, "why", (Diagnostic("error", code, "message", 3),), ("rlimits",))


def test_the_key_depends_on_everything() -> None:
    base = ("source", {"a": 1}, "sm_90a", "4.8.1", "f32[1]")
    others = [("source ", *base[1:]), (base[0], {"a": 2}, *base[2:]), (*base[:2], "sm_90", *base[3:]),
              (*base[:3], "4.8.2", base[4]), (*base[:4], "f32[2]")]  # fmt: skip
    assert len({BuildCache.key(*base), *(BuildCache.key(*o) for o in others)}) == 6


@pytest.mark.parametrize(
    ("verdict", "kept"),
    [(Verdict.COMPILE_ERROR, True), (Verdict.CONTRACT, True), (Verdict.HOST_READS_DATA, True),
     (Verdict.COMPILE_TIMEOUT, False), (Verdict.COMPILE_CRASH, False), (Verdict.COMPILE_LIMIT, False)],
)  # fmt: skip
def test_only_what_the_text_decides_is_kept(tmp_path: Path, verdict: Verdict, kept: bool) -> None:
    cache = BuildCache(tmp_path)
    cache.put("ab" * 32, failure(verdict), ("rlimits",))
    assert cache.get("ab" * 32) == ((failure(verdict), ("rlimits",)) if kept else None)


def test_an_error_of_the_machine_is_not_kept(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    cache.put("ab" * 32, failure(Verdict.COMPILE_ERROR, "OSError"), ())
    assert cache.get("ab" * 32) is None


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path, max_bytes=1)
    keys = [f"{n:02x}" * 32 for n in range(4)]
    wide = BuildCache(tmp_path)
    for age, key in enumerate(keys):
        wide.put(key, failure(Verdict.CONTRACT), ())
        os.utime(wide._path(key), (age, age))
    size = wide._path(keys[0]).stat().st_size
    assert wide.get(keys[0]) is not None  # used now: the youngest
    cache._max_bytes = 2 * size
    cache.prune()
    assert [k for k in keys if cache.get(k)] == [keys[0], keys[3]]


def test_an_unwritable_cache_loses_nothing_but_time(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    cache = BuildCache(blocker / "below")
    cache.put("ab" * 32, failure(Verdict.CONTRACT), ())
    assert cache.get("ab" * 32) is None
