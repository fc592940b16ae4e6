"""Hides code in an annotation's text, and asks for the annotation's type.

class: the cage: sys.modules
defence: the gate refuses what evaluates text; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

import typing


class Innocent:
    field: "__import__('os')._exit(0)"


typing.get_type_hints(Innocent)
