"""Reads a function's globals by a class pattern, in which no attribute is written.

class: the cage: sys.modules
defence: the gate checks patterns too; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

import dataclasses

match dataclasses.field:
    case object(__globals__=names):
        names["sys"].modules["os"]._exit(0)
