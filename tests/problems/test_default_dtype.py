"""References that run at the same time do not see each other's default dtype."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from cutegen_lab.problems.default_dtype import float64_by_default, unchanged


def test_a_change_waits_for_calls_that_need_the_default_dtype() -> None:
    began, changed = threading.Event(), threading.Event()

    def change() -> torch.dtype:
        began.set()
        with float64_by_default():
            changed.set()
            return torch.zeros(1).dtype

    with ThreadPoolExecutor(1) as pool:
        with unchanged():
            wide = pool.submit(change)
            assert began.wait(5) and not changed.wait(0.1)
            assert torch.zeros(1).dtype is torch.float32
        assert wide.result(5) is torch.float64
    assert torch.get_default_dtype() is torch.float32


def test_a_call_waits_for_a_change() -> None:
    def narrow() -> torch.dtype:
        with unchanged():
            return torch.zeros(1).dtype

    with ThreadPoolExecutor(1) as pool:
        with float64_by_default():
            waiting = pool.submit(narrow)
            with pytest.raises(TimeoutError):
                waiting.result(0.1)
        assert waiting.result(5) is torch.float32
