"""Hides code in a string annotation, and has it evaluated as a type.

class: the cage: sys.modules
defence: the gate refuses functions that evaluate text; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

import typing


class Innocent:
    field: "__import__('os')._exit(0)"


typing.get_type_hints(Innocent)
