"""The analyst's reference as it is timed: with PyTorch's own settings, but for what its text says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from cutegen_lab.core.stopwatch import ReferenceKind
from cutegen_lab.devices.cuda.subjects import ReferenceSubject, wipe
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


@pytest.mark.parametrize(("kind", "last"), [("eager", False), ("channels_last", True)])
def test_images_and_weights_are_read_in_that_layout_from_the_same_memory(kind: ReferenceKind, last: bool) -> None:
    image, weight, bias = torch.rand(2, 3, 5, 7), torch.rand(4, 3, 3, 2), torch.rand(4)

    class Images:
        def inputs(self, index: int) -> list[torch.Tensor]:
            return [image, weight, bias]

    text = "def reference(x, w, b):\n    return F.conv2d(x, w, b), x, w\n"
    problem = read_text(text, inputs_text="x: f32[2,3,5,7], w: f32[4,3,3,2], b: f32[4]")
    subject = ReferenceSubject(problem, kind, Images())  # type: ignore[arg-type]
    out, x, w = subject.call(0)  # type: ignore[misc]
    assert x.shape == image.shape and x.data_ptr() == image.data_ptr() and w.data_ptr() == weight.data_ptr()
    assert [t.is_contiguous(memory_format=torch.channels_last) for t in (x, w)] == [last, last]
    assert x.reshape(-1).sort().values.equal(image.reshape(-1).sort().values), "every element once"
    torch.testing.assert_close(out, torch.nn.functional.conv2d(x.contiguous(), w.contiguous(), bias))


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


def test_what_a_reference_returned_can_be_wiped_whole() -> None:
    """Also where it is a view, or memory in another order; a copy's tensor belongs to a set, which is rewritten."""
    whole, copied = torch.zeros(6, 4), torch.zeros(3)
    flags = torch.zeros(5, dtype=torch.bool)
    wipe((whole.t()[1:], flags))
    wipe(copied)
    wipe(None)
    assert bool(whole.isnan().all()) and flags.view(torch.uint8).eq(0xFF).all() and not copied.any()
