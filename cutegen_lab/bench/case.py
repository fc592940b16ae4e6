"""One row of a benchmark's table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import read_text


@dataclass(frozen=True)
class Case:
    """``expression`` of ``inputs``. ``peer`` is the text of another project's kernel for the same tensors, if any;
    ``flops`` are those of its matrix products, 0 where memory is what counts; ``tf32``: they may round fp32 operands,
    PyTorch's too."""

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
    """``expression`` of ``inputs`` ("x: bf16[8,4], w: bf16[4]"; further workloads after semicolons) as a reference,
    which may use TF32 where ``tf32`` says so."""
    arguments = ", ".join(re.findall(r"(\w+):", inputs.partition(";")[0]))
    asks = 'torch.set_float32_matmul_precision("high")\n' if tf32 else ""
    source = f"{asks}def reference({arguments}):\n    return {expression}\n"
    return read_text(source, name=name, inputs_text=inputs)
