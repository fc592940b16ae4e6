"""All cases, in the order they are timed."""

from __future__ import annotations

from cutegen_lab.bench import memory_bound
from cutegen_lab.bench.case import Case

CASES: tuple[Case, ...] = tuple(memory_bound.cases())
