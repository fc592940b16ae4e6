"""Fake tensors: a reference computes shapes and dtypes with them, without memory."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems.tensors import empty


@contextlib.contextmanager
def fake_tensors(specs: tuple[TensorSpec, ...]) -> Iterator[list[torch.Tensor]]:
    """A fake tensor for each spec, for use inside the block."""
    with _quiet(), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        yield [empty(spec) for spec in specs]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences torch's error log: a shape that the reference refuses is an expected result. Disables fused attention
    kernels, which accept fake tensors of any shape."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    was, logger.disabled = logger.disabled, True
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        logger.disabled = was
        torch.backends.mha.set_fastpath_enabled(fused)
