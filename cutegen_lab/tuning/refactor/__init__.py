"""Stage one of the two-stage tuner: turns a kernel without TUNABLE into a template of the same kernel."""

from cutegen_lab.tuning.refactor.template import Dropped, Kept, Refactored, refactor

__all__ = ["Dropped", "Kept", "Refactored", "refactor"]
