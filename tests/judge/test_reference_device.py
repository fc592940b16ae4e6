"""Large workloads are judged beside the GPU where that works, and on the CPU where it does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.reference_device import LARGE_BYTES, ReferenceDevice, torch_threads, torch_threads_for
from tests.judge.torch_device import TorchDevice

LARGE = TensorSpec.parse(f"x: f32[{LARGE_BYTES // 4}]")
SMALL = TensorSpec.parse("x: f32[8]")
INDEX = TensorSpec.parse("at: i64[8]")
EIGHT_BITS = TensorSpec.parse("x: f8e4m3fn[8]")


@pytest.fixture(autouse=True)
def _a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    yield


def place(*inputs: TensorSpec, beside: str) -> ReferenceDevice:
    device = TorchDevice(lambda *tensors: None, "cuda")
    device.torch_device = beside
    return ReferenceDevice(device, Workload("w", inputs, (SMALL,)))


def test_large_or_8_bit_floating_point_work_leaves_the_cpu() -> None:
    assert place(SMALL, beside="cpu:0").run(str) == "cpu"
    assert place(LARGE, beside="cpu:0").run(str) == "cpu:0"
    assert place(EIGHT_BITS, beside="cpu:0").run(str) == "cpu:0", "a CPU may multiply them number by number"
    assert place(LARGE, INDEX, beside="cpu:0").run(str) == "cpu", "an index out of range would end the context"


def test_tensors_made_by_a_reference_are_made_there() -> None:
    assert place(LARGE, beside="meta").run(lambda where: torch.arange(3).device.type) == "meta"
    assert torch.arange(3).device.type == "cpu"


def test_what_fails_there_is_done_on_the_cpu_from_then_on() -> None:
    asked = []

    def work(where: str) -> float:
        asked.append(where)
        return float(torch.ones(3, device=where).sum())  # a meta tensor has no value

    here = place(LARGE, beside="meta")
    assert here.run(work) == here.run(work) == 3.0
    assert asked == ["meta", "cpu", "cpu"]


def test_an_error_of_the_work_itself_is_raised() -> None:
    def work(where: str) -> None:
        raise RuntimeError(f"not on {where}")

    with pytest.raises(RuntimeError, match="not on cpu"):
        place(LARGE, beside="cpu:0").run(work)


def test_full_precision_is_asked_of_pytorch_and_given_back() -> None:
    torch.backends.cudnn.allow_tf32 = True
    assert place(LARGE, beside="cpu:0").run(lambda where: torch.backends.cudnn.allow_tf32) is False
    assert torch.backends.cudnn.allow_tf32


def test_a_small_workload_has_one_thread_and_others_the_free_cores() -> None:
    with torch_threads(2):
        for spec, busy, count in ((SMALL, 0, 1), (LARGE, 0, 2), (LARGE, 1, 1), (LARGE, 5, 1)):
            with torch_threads_for(Workload("w", (spec,), (SMALL,)), busy):
                assert torch.get_num_threads() == count
        assert torch.get_num_threads() == 2
