"""Attacks that can be mounted against any problem, given an honest kernel for it: text in, hostile text out.

``texts/`` holds the catalogue, one readable piece of CuTe text an attack. :func:`mount` combines one with an honest
module; what should catch it, and with which verdict, stands in its docstring. Nothing here compiles or runs anything.
"""

from cutegen_lab.attacks.attack import Attack, NotApplicable
from cutegen_lab.attacks.catalogue import catalogue, read_header
from cutegen_lab.attacks.defences import defence_of
from cutegen_lab.attacks.mount import mount

__all__ = ["Attack", "NotApplicable", "catalogue", "defence_of", "mount", "read_header"]
