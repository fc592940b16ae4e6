"""Reads an analyst's cell or file as a :class:`~cutegen_lab.core.problem.Problem`, and runs its reference."""

from cutegen_lab.problems.read import read_file, read_text
from cutegen_lab.problems.reference import Reference

__all__ = ["Reference", "read_file", "read_text"]
