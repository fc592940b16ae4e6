"""PyTorch starts on a GPU while small workloads are checked, and delays nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.checks import gpu_start
from cutegen_lab.judge.reference_device import LARGE_BYTES
from tests.judge.torch_device import TorchDevice

OUT = TensorSpec.parse("y: f32[8]")
SMALL, LARGE = (Workload(f"of {n}", (TensorSpec.parse(f"x: f32[{n}]"),), (OUT,)) for n in (8, LARGE_BYTES // 4))


def started(workloads: Sequence[Workload], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    found: list[tuple[str, str]] = []

    def note(where: str, small: Workload, ended: threading.Event) -> None:
        found.append((where, small.name))

    monkeypatch.setattr(gpu_start, "_first_operations", note)
    device = TorchDevice(lambda *tensors: None, "cuda")
    device.torch_device = "cuda:1"
    with gpu_start.gpu_started(device, workloads):
        pass
    return found


def test_it_is_started_where_a_large_workload_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    assert started([SMALL], monkeypatch) == []
    assert started([SMALL, LARGE], monkeypatch) == [("cuda:1", SMALL.name)]


def test_everything_is_done_with_small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(gpu_start, "draw", lambda workload, name, *_: drawn.append(name))
    gpu_start._first_operations("cpu", SMALL, threading.Event())
    assert {"normal", "large", "nan"} <= {*drawn}


def test_a_verdict_does_not_wait_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, ended = list[str](), threading.Event()

    def draw_one(workload: Workload, name: str, *_: object) -> None:
        drawn.append(name)
        ended.set()

    monkeypatch.setattr(gpu_start, "draw", draw_one)
    gpu_start._first_operations("cpu", SMALL, ended)
    assert len(drawn) == 1


def test_a_gpu_that_cannot_be_started_is_no_error() -> None:
    gpu_start._first_operations("meta", SMALL, threading.Event())  # no value of a tensor there can be read
