"""The analyst's reference as it is timed: with PyTorch's own settings, but for what its text says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from cutegen_lab.devices.cuda.subjects import ReferenceSubject
from cutegen_lab.problems import read_text

CONVOLUTION = "def reference(x, w):  # x: f32[2,3,20], w: f32[4,3,5]\n    return F.conv1d(x, w)\n"


class Sets:
    """Tensors on the CPU in the place of a stopwatch's."""

    def inputs(self, index: int) -> list[torch.Tensor]:
        return [torch.ones(2, 3, 20), torch.ones(4, 3, 5)]


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize(
    ("line", "convolutions", "products"),
    [
        ("", True, False),
        ("torch.backends.cudnn.allow_tf32 = False\n", False, False),
        ("torch.backends.cuda.matmul.allow_tf32 = True\n", True, True),
    ],
)
def test_a_baseline_has_pytorch_s_defaults_and_what_its_text_says(
    line: str, convolutions: bool, products: bool
) -> None:
    torch.backends.cudnn.allow_tf32 = not convolutions
    subject = ReferenceSubject(read_text(line + CONVOLUTION), "eager", Sets())  # type: ignore[arg-type]
    assert torch.backends.cudnn.allow_tf32 is convolutions
    assert torch.backends.cuda.matmul.allow_tf32 is products
    assert subject.call(0) is not None
