"""Operators that eager PyTorch executes for a reference, as the dispatcher calls them for fake tensors on the CPU.

Not from the graph of ``torch.export``: that keeps composite operators whole (``einsum``, ``cross_entropy``), which
eager PyTorch executes in several kernels, and it does not read every reference. Recurrent layers count as the operators
of their steps, though cuDNN has one kernel for them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.core.operations import Execution, Operation
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.problems import traffic
from cutegen_lab.problems.drawn import DrawnIndices
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.fakes import fake_tensors
from cutegen_lab.problems.matrix_flops import matrix_flops
from cutegen_lab.problems.reference import Reference
from cutegen_lab.problems.tracing import tracing
from cutegen_lab.problems.traffic import Part, covered_bytes
from cutegen_lab.problems.vector_operations import vector_operations

_NAMES = {dtype: name for name, dtype in TORCH.items()}


def execution(problem: Problem, workload: Workload) -> Execution:
    """What eager PyTorch executes for ``workload`` of ``problem``; needs no memory for tensors. Raises ProblemError."""
    with tracing():
        reference = Reference(problem)
        with fake_tensors(workload.inputs) as tensors:
            return executed(lambda: reference.run(tensors), tensors, workload.inputs)


def executed(
    run: Callable[[], Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], specs: Sequence[TensorSpec]
) -> Execution:
    """What ``run()``, which computes outputs from the fake ``inputs`` (of ``specs``), executes."""
    recorder = _Recorder(DrawnIndices(specs, inputs))
    # The fused backend passes ``is_causal`` on.
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]), _WholeNorms(recorder), recorder:
        outputs = run()
    steps = recorder.live_steps(outputs)
    read = [part for step in steps for part in step.read] + list(map(Part.of, outputs))
    operations = [step.operation for step in steps]
    return Execution(
        operations=tuple(step.operation for step in recorder.steps),
        input_bytes=tuple(_bytes_read(tensor, read) for tensor in inputs),
        flops=sum(operation.flops for operation in operations),
        vector_operations=sum(operation.vector_operations for operation in operations),
        special_functions=sum(operation.special_functions for operation in operations),
    )


def _bytes_read(tensor: torch.Tensor, read: Sequence[Part]) -> int:
    """Minimum bytes of ``tensor`` in the parts of its memory that were ``read``. Elements chosen by indices may be any
    of the others, so of these only the largest part counts, and only if it is larger than all others together."""
    memory = tensor.untyped_storage()._cdata
    parts = dict.fromkeys(part for part in read if part.memory == memory)
    chosen = max((part.least_bytes for part in parts if part.indices), default=0)
    return max(covered_bytes(tensor, [part for part in parts if not part.indices]), chosen)


@dataclass(frozen=True)
class _Step:
    operation: Operation
    read: tuple[Part, ...]
    written: tuple[Part, ...]


class _Recorder(TorchDispatchMode):
    """Records operators in order."""

    def __init__(self, drawn: DrawnIndices) -> None:
        super().__init__()
        self.steps: list[_Step] = []
        self._drawn = drawn
        self._paused = False
        self._kept: list[Any] = []  # keeps tensors alive: memory has its number only as long as a tensor uses it

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self._paused:
            self.add(func, args, kwargs or {}, result)
        return result

    def add(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Records the operator ``func``."""
        self._kept.append((args, kwargs, result))
        if step := _step(func, args, kwargs, result, self._drawn):
            self.steps.append(step)
            self._drawn.follow(func, args, result, [part.memory for part in step.written])

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Records nothing inside the block."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def live_steps(self, outputs: Sequence[torch.Tensor]) -> list[_Step]:
        """Steps whose results can affect ``outputs``, the last first."""
        needed = {Part.of(tensor).memory for tensor in outputs}
        live = []
        for step in reversed(self.steps):
            if any(part.memory in needed for part in step.written):
                live.append(step)
                needed |= {part.memory for part in step.read}
        return live


class _WholeNorms(TorchFunctionMode):
    """Records an RMS norm as one operator: PyTorch has a kernel for it on a GPU, and eight operators on the CPU."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func not in (torch.rms_norm, torch.nn.functional.rms_norm):
            return func(*args, **given)
        with self._recorder.paused():
            result = func(*args, **given)
        self._recorder.add(torch.ops.aten.rms_norm.default, _in_order(*args, **given), {}, result)
        return result


def _in_order(
    input: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> tuple[Any, ...]:
    """Arguments of an RMS norm by position."""
    return input, normalized_shape, weight, eps


def _step(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, drawn: DrawnIndices) -> _Step | None:
    """The operator with its traffic; None for operators that launch nothing."""
    if not isinstance(func, torch._ops.OpOverload):
        return None
    written = tuple(traffic.written(func, args, kwargs, result))
    if not written:
        return None
    read = tuple(dict.fromkeys(traffic.read(func, args, kwargs, result, drawn)))
    operands = [tensor.dtype for tensor in traffic.tensors(args)]
    plain, special = vector_operations(func, args, result)
    operation = Operation(
        name=f"aten.{func._opname}",
        bytes_read=sum(part.nbytes for part in read),
        bytes_written=sum(part.nbytes for part in written),
        flops=matrix_flops(func, args, kwargs, result),
        operand_dtype=next((_NAMES[dtype] for dtype in operands if dtype in _NAMES), None),
        vector_operations=plain,
        special_functions=special,
    )
    return _Step(operation, read, written)
