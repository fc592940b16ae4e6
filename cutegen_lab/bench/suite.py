"""All cases, in the order they are timed."""

from __future__ import annotations

from cutegen_lab.bench import memory_bound, products
from cutegen_lab.bench.case import Case

CASES: tuple[Case, ...] = (*memory_bound.cases(), *products.cases())
