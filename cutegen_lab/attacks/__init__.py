"""Attacks that can be mounted on an honest kernel of any problem.

``texts/`` is the catalogue: one piece of CuTe text for each attack, whose docstring names the expected defence and
verdicts. :func:`mount` joins one with an honest module's text. Nothing here compiles or runs anything.
"""

from cutegen_lab.attacks.attack import Attack, NotApplicable
from cutegen_lab.attacks.catalogue import catalogue, read_header
from cutegen_lab.attacks.mount import mount
from cutegen_lab.attacks.verdict_words import defence_of

__all__ = ["Attack", "NotApplicable", "catalogue", "defence_of", "mount", "read_header"]
