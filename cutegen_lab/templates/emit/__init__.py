"""Writes a kernel module for one config: parameters become constants, branches that are never taken go."""

from cutegen_lab.templates.emit.config import settings
from cutegen_lab.templates.emit.observe import Probe
from cutegen_lab.templates.emit.refusal import CannotSpecialise
from cutegen_lab.templates.emit.specialise import specialise

__all__ = ["CannotSpecialise", "Probe", "settings", "specialise"]
