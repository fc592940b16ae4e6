"""What an attack is, and what it needs of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.verdict import Verdict


@dataclass(frozen=True)
class Attack:
    """A way to cheat on any problem that has what it ``needs``.

    ``kind``: its class ("writes half"). ``defence``: what should catch it. ``verdicts``: the correct ones.
    ``behind_gate``: the correct ones if the gate is skipped; empty for kernels, which the gate accepts. ``scratch``:
    extra workspace it takes (:data:`SCRATCH`). ``needs``: what a problem must have (:data:`NEEDS`). ``open_reason``:
    why it is not caught yet; empty if it is caught.
    """

    name: str
    kind: str
    what: str
    defence: str
    verdicts: tuple[Verdict, ...]
    text: str
    behind_gate: tuple[Verdict, ...] = ()
    scratch: str = ""
    needs: tuple[str, ...] = ()
    open_reason: str = ""

    @property
    def is_kernel(self) -> bool:
        """Whether it cheats in code that runs on the GPU; otherwise it attacks the cage when it is imported."""
        return "def attack(" in self.text


class NotApplicable(Exception):
    """This attack does not fit this problem or kernel; the message says why."""


def _element_types(outputs: bool, *dtypes: DType) -> Callable[[Problem], bool]:
    def holds(problem: Problem) -> bool:
        tensors = problem.workload.outputs if outputs else problem.workload.inputs
        return bool(tensors) and tensors[0].dtype in dtypes

    return holds


_FLOATS = tuple(d for d in DType if d.is_float)

NEEDS: Mapping[str, Callable[[Problem], bool]] = {
    "an input": lambda problem: bool(problem.workload.inputs),
    "products at float32's accuracy": lambda problem: not problem.tf32,
    "a floating-point input": _element_types(False, *_FLOATS),
    "a float32 input": _element_types(False, DType.F32),
    "a floating-point output": _element_types(True, *_FLOATS),
    "a float32 output": _element_types(True, DType.F32),
    "a 16-bit floating-point output": _element_types(True, DType.BF16, DType.F16),
}
"""Requirements on a problem, or on its first input or first output, by name."""

SCRATCH: Mapping[str, Callable[[Workload], int]] = {
    "": lambda workload: 0,
    "like outputs": lambda workload: len(workload.outputs),
    "like inputs": lambda workload: len(workload.inputs),
    "memory": lambda workload: 1,
    "128 GiB": lambda workload: 1,
}
"""Kinds of extra workspace that an attack takes; :mod:`cutegen_lab.attacks.mount` writes their declaration."""
