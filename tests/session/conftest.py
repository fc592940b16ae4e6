"""A stopwatch that is not there needs no warming up."""

from __future__ import annotations

from functools import partial

import pytest

from cutegen_lab.judge.timing import interleaved


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleaved, "Effort", partial(interleaved.Effort, warm_up_seconds=0.0))
