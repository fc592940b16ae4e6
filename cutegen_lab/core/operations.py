"""Operators that eager PyTorch executes for a workload: bytes that each moves, operations that each computes."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.core.dtypes import DType


@dataclass(frozen=True)
class Operation:
    """One operator, executed as a kernel of its own."""

    name: str
    """ATen's name ("aten.addmm")."""
    bytes_read: int
    """Bytes of its operands, each element read once."""
    bytes_written: int
    """Bytes of its results, each element written once."""
    flops: int = 0
    """Operations of its matrix products, convolutions or attention."""
    operand_dtype: DType | None = None
    """Element type of the first operand; None if no kernel input can have it (complex numbers)."""
    vector_operations: int = 0
    """Other additions, multiplications and comparisons: one per element and step."""
    special_functions: int = 0
    """Exponentials, logarithms, roots and trigonometric functions."""

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class Execution:
    """What eager PyTorch executes for one workload."""

    operations: tuple[Operation, ...]
    """In order; views are left out, since they move nothing."""
    input_bytes: tuple[int, ...]
    """Bytes of each input that must be read: 0 for an input that affects no output, the part that slices leave, and the
    rows that indices choose in a timed call (problems/drawn.py)."""
    flops: int
    """Operations of the matrix products, convolutions and attention that can affect an output."""
    vector_operations: int
    """As in :class:`Operation`, of operators that can affect an output."""
    special_functions: int
    """As in :class:`Operation`, of operators that can affect an output."""

    @property
    def bytes_moved(self) -> int:
        """Bytes that all operators move: each intermediate is written once, and read once by each of its users."""
        return sum(operation.bytes_moved for operation in self.operations)
