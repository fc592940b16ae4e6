"""Takes a function's globals out by a class pattern, where no attribute is written.

class: the cage: sys.modules
defence: the gate reads patterns too; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

import dataclasses

match dataclasses.field:
    case object(__globals__=names):
        names["sys"].modules["os"]._exit(0)
