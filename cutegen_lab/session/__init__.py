"""Wires providers, compiler, judge, device and store into runs. Importing it loads neither torch nor cutlass."""

from cutegen_lab.session.handle import RunHandle
from cutegen_lab.session.session import Session

__all__ = ["RunHandle", "Session"]
