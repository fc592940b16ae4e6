"""Memory that is freed while a kernel is judged is used again, and given back some time later."""

from __future__ import annotations

import resource
import time

import psutil
import pytest
import torch

from cutegen_lab.core import kept_memory

TIMES, TENSOR = 8, 96 << 20  # bytes


def faults() -> int:
    """Pages that the system has to find for tensors that come and go."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(TIMES):
        torch.ones(TENSOR // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_what_is_freed_is_used_again_and_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_memory, "_IDLE_SECONDS", 0.1)
    kept_memory._KEPT._give_back()  # what an earlier test may have left
    usual = faults()
    with kept_memory.kept_memory():
        kept = faults()
        held = psutil.Process().memory_info().rss
    assert kept < usual / 3, (kept, usual)
    deadline = time.monotonic() + 20
    while psutil.Process().memory_info().rss > held - TENSOR / 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert psutil.Process().memory_info().rss < held - TENSOR / 2


def test_it_is_kept_while_anybody_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_memory, "_IDLE_SECONDS", 0.05)
    with kept_memory.kept_memory():
        with kept_memory.kept_memory():
            pass
        time.sleep(0.3)
        faults()
        assert faults() < TIMES * TENSOR // 4096 // 3
