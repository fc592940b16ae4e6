"""A spec as typed data. Every part records its position in the text, for error messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import SpecError


@dataclass(frozen=True)
class Place:
    """Line and column, both starting at 1."""

    line: int
    column: int

    def error(self, message: str, action: str = "") -> SpecError:
        return SpecError(message, action, self.line, self.column)


@dataclass(frozen=True)
class Name:
    name: str
    place: Place


@dataclass(frozen=True)
class Number:
    value: int | float
    place: Place


Setting = int | float | bool | str | tuple[int, ...]


@dataclass(frozen=True)
class Apply:
    """A function or an operator, by function name: ``add``, ``matmul``, ``transpose``, ``softmax``, …"""

    function: str
    arguments: tuple[Expr, ...]
    keywords: Mapping[str, Setting]
    place: Place


Expr = Name | Number | Apply
Dim = int | str


@dataclass(frozen=True)
class Input:
    """An input. ``strides``: in elements; empty if the tensor is row-major and dense."""

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    strides: tuple[int, ...]
    place: Place


@dataclass(frozen=True)
class Value:
    """A named value. ``let``: an expression. ``tmp``: stored in memory for later steps. ``out``: a result.

    ``dims`` is None if the spec does not declare a shape.
    """

    kind: Literal["let", "tmp", "out"]
    name: str
    expr: Expr
    place: Place
    dtype: DType | None = None
    dims: tuple[Dim, ...] | None = None


@dataclass(frozen=True)
class Option:
    """A setting. ``names``: possible names, resolved by the parameters of the template. ``tile 128x256`` is ("tile",
    (128, 256)), ``with vec=8`` is ("vec", (8,))."""

    name: str
    values: tuple[int | str, ...]
    place: Place


@dataclass(frozen=True)
class Step:
    """What one kernel computes, and its settings."""

    name: str
    place: Place
    values: tuple[Value, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class Spec:
    """A whole spec. ``sizes``: one mapping of size names for each workload, main first; a single empty one if all sizes
    are numbers. ``tf32``: matrix products round fp32 operands to TF32. ``place``: position of the architecture, or of
    the name if there is none."""

    name: str
    arch: str
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    sizes: tuple[Mapping[str, int], ...] = field(default=({},))
    tf32: bool = False
    place: Place = Place(1, 1)

    @property
    def tmps(self) -> tuple[Value, ...]:
        return tuple(v for step in self.steps for v in step.values if v.kind == "tmp")

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(v for step in self.steps for v in step.values if v.kind == "out")
