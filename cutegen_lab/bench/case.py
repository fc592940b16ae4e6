"""One row of a benchmark's table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import read_text


@dataclass(frozen=True)
class Case:
    """``expression`` of ``inputs``. ``peer`` is the text of another project's kernel for the same tensors, if any;
    ``flops`` are those of its matrix products, 0 where memory is what counts."""

    work: str
    shape: str
    expression: str
    inputs: str
    peer: str = ""
    flops: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.work}-{self.shape}"

    @cached_property
    def problem(self) -> Problem:
        arguments = ", ".join(part.split(":")[0].strip() for part in self.inputs.split("], "))
        source = f"def reference({arguments}):\n    return {self.expression}\n"
        return read_text(source, name=self.name, inputs_text=self.inputs)
