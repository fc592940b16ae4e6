"""The spec language, in which a kernel is requested: text → typed form → checks → a template and its config."""

from cutegen_lab.cutespec.form import Spec
from cutegen_lab.cutespec.parse import GRAMMAR, parse

__all__ = ["GRAMMAR", "Spec", "parse"]
