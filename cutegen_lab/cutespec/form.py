"""A spec as typed data. Every part knows its place in the text, for errors to point at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import SpecError


@dataclass(frozen=True)
class Place:
    """Line and column, both from 1."""

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
    """A function or an operator by its function's name: ``add``, ``matmul``, ``transpose``, ``softmax``, …"""

    function: str
    arguments: tuple[Expr, ...]
    keywords: Mapping[str, Setting]
    place: Place


Expr = Name | Number | Apply
Dim = int | str


@dataclass(frozen=True)
class Input:
    """``strides`` in elements, empty where it lies row-major."""

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    strides: tuple[int, ...]
    place: Place


@dataclass(frozen=True)
class Value:
    """``let`` is a name for an expression, ``tmp`` goes through memory to later steps, ``out`` is a result.

    ``dims`` None: whatever the expression gives.
    """

    kind: Literal["let", "tmp", "out"]
    name: str
    expr: Expr
    place: Place
    dtype: DType | None = None
    dims: tuple[Dim, ...] | None = None


@dataclass(frozen=True)
class Option:
    """``names`` that may be meant, of which the template's parameters decide: ``tile 128x256`` is ("tile", (128, 256)),
    ``with vec=8`` is ("vec", (8,))."""

    name: str
    values: tuple[int | str, ...]
    place: Place


@dataclass(frozen=True)
class Step:
    """What one kernel computes, and how it is run."""

    name: str
    place: Place
    values: tuple[Value, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class Spec:
    """``sizes`` gives one mapping a workload, the main one first; at least one, which is empty where all is numbers.
    ``tf32``: matrix products round f32 operands to it. ``place`` is that of the architecture, or of the name alone."""

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
