"""Operands of one mma.sync (PTX ISA 9.7.14.5), and their names in generated code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PER_REGISTER = {"f64": 1, "tf32": 1, "f16": 2, "bf16": 2, "s8": 4, "u8": 4, "e4m3": 4, "e5m2": 4, "s4": 8, "u4": 8,
                "b1": 32}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One form of mma: its shape and element types; ``bits``: the operation on single bits (xor, and)."""

    shape: tuple[int, int, int]
    d: str
    a: str
    b: str
    c: str
    saturate: bool = False
    bits: str = ""

    @property
    def registers(self) -> tuple[int, int, int, int]:
        """Registers per lane for D, A, B and C."""
        m, _, k = self.shape
        steps = k // (4 * PER_REGISTER[self.a])
        d, c = (m // 8 if kind == "f16" else m // 4 for kind in (self.d, self.c))
        return d, steps * (m // 8), steps, c

    @property
    def operations(self) -> int:
        """Operations of one warp: 2 · M · N · K."""
        m, n, k = self.shape
        return 2 * m * n * k

    @property
    def sums_longer(self) -> int:
        """Largest K of a fused product; 1 if each instruction rounds or saturates its result."""
        if self.d == "f16" or self.saturate:
            return 1
        return {"s8": 256, "u8": 256}.get(self.a, 1024)  # sums of 256 products of bytes are exact in float32


Names = tuple[str, ...]
"""Registers of one fragment, by their names in generated code."""


def registers(names: Names) -> set[str]:
    return {name[1:-1] for name in names}


@dataclass(frozen=True)
class Product:
    """The operands of one mma."""

    form: Form
    d: Names
    a: Names
    b: Names
    c: Names

    def operands(self) -> set[str]:
        """Registers of A and B."""
        return registers((*self.a, *self.b))

    def rows(self) -> str:
        return rows_text([[self.d]], [[self.a]], [[self.b]], [[self.c]])


def rows_text(*tables: list[list[Names]]) -> str:
    """Nested tuples of rows, in the order D, A, B, C."""
    return _tuple(_tuple(_tuple(_tuple(names) for names in line) for line in table) for table in tables)


def _tuple(items: Iterable[str]) -> str:
    return "(" + "".join(f"{item}," for item in items) + ")"
