"""Compiles an exported kernel's ``launch`` with the CuTe DSL at the first call for a set of shapes, and launches it.

Exported files carry this text; it may import nothing of cutegen-lab but ``carried_shapes``, whose text they carry too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from cutegen_lab.exports.carried_shapes import Served


class Kernel:
    """``launch`` of the kernel's text with its config, for the shapes that were judged."""

    def __init__(
        self, launch: Callable[..., Any], config: Mapping[str, Any], workloads: Sequence[dict[str, Any]]
    ) -> None:  # fmt: skip
        self._launch, self._config, self._served = launch, config, Served(workloads)
        self._compiled: dict[tuple[int, int | None], Any] = {}

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """The outputs. Raises ValueError for inputs that the kernel does not serve."""
        outputs = self._served.outputs(self._served.find(tensors), tensors[0])
        self.into(tensors, outputs)
        return outputs

    def into(self, tensors: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        """Writes ``outputs``. Raises ValueError for inputs that the kernel does not serve."""
        import cuda.bindings.driver as cuda
        import cutlass.cute as cute
        from cutlass.cute.runtime import make_fake_stream

        number, device = self._served.find(tensors), tensors[0].device
        given = [*tensors, *outputs, *self._served.workspace(number, tensors[0])]
        if (number, device.index) not in self._compiled:
            fakes = [_fake(tensor) for tensor in given]
            self._compiled[number, device.index] = cute.compile(
                self._launch, *fakes, make_fake_stream(), **self._config
            )
        stream = cuda.CUstream(torch.cuda.current_stream(device).cuda_stream)
        self._compiled[number, device.index](*(_argument(tensor) for tensor in given), stream)


_ALIGNMENT_BYTES = 16
_TYPES = {
    torch.float64: "Float64", torch.float32: "Float32", torch.float16: "Float16", torch.bfloat16: "BFloat16",
    torch.int64: "Int64", torch.int32: "Int32", torch.int16: "Int16", torch.int8: "Int8", torch.uint8: "Uint8",
    torch.bool: "Boolean", torch.float8_e4m3fn: "Float8E4M3FN", torch.float8_e5m2: "Float8E5M2",
}  # fmt: skip
_AS_BYTES = (torch.bool, torch.float8_e4m3fn, torch.float8_e5m2)  # types that some versions of DLPack lack


def _fake(tensor: torch.Tensor) -> Any:
    """Type, shape and strides of a tensor, all static."""
    import cutlass
    from cutlass.cute.runtime import make_fake_tensor

    kind = getattr(cutlass, _TYPES[tensor.dtype])
    return make_fake_tensor(kind, tuple(tensor.shape), tuple(tensor.stride()), assumed_align=_ALIGNMENT_BYTES)


def _argument(tensor: torch.Tensor) -> Any:
    """A tensor as a compiled function takes it."""
    import cutlass
    from cutlass.cute.runtime import from_dlpack

    if tensor.dtype not in _AS_BYTES:
        return from_dlpack(tensor.detach(), assumed_align=_ALIGNMENT_BYTES)
    made = from_dlpack(tensor.detach().view(torch.uint8), assumed_align=_ALIGNMENT_BYTES)
    made.element_type = getattr(cutlass, _TYPES[tensor.dtype])
    return made
