"""One row of a benchmark's table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import read_text


@dataclass(frozen=True)
class Case:
    """One row: ``expression`` of ``inputs``.

    ``peer``: source of another project's kernel for the same tensors; "" if there is none. ``flops``: floating-point
    operations of the matrix products; 0 if the case is memory-bound. ``tf32``: whether fp32 operands may be rounded to
    TF32, also in PyTorch.
    """

    work: str
    shape: str
    expression: str
    inputs: str
    peer: str = ""
    flops: float = 0.0
    tf32: bool = False

    @property
    def name(self) -> str:
        return f"{self.work}-{self.shape}"

    @cached_property
    def problem(self) -> Problem:
        return problem_of(self.name, self.expression, self.inputs, self.tf32)


def problem_of(name: str, expression: str, inputs: str, tf32: bool = False) -> Problem:
    """Problem whose reference is ``expression`` of ``inputs`` ("x: bf16[8,4], w: bf16[4]"; semicolons separate
    workloads). ``tf32``: whether the reference may use TF32."""
    arguments = ", ".join(re.findall(r"(\w+):", inputs.partition(";")[0]))
    asks = 'torch.set_float32_matmul_precision("high")\n' if tf32 else ""
    source = f"{asks}def reference({arguments}):\n    return {expression}\n"
    return read_text(source, name=name, inputs_text=inputs)
