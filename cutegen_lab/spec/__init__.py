"""The compact language a kernel is asked for in: text → typed form → checks → a template and its config."""

from cutegen_lab.spec.form import Spec
from cutegen_lab.spec.parse import GRAMMAR, parse

__all__ = ["GRAMMAR", "Spec", "parse"]
