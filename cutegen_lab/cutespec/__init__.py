"""The spec language for requesting a kernel: text → typed form → checks → a template and its config."""

from cutegen_lab.cutespec.form import Spec
from cutegen_lab.cutespec.parse import GRAMMAR, parse

__all__ = ["GRAMMAR", "Spec", "parse"]
