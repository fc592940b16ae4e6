"""Spells a forbidden attribute in a string, and has a pure library look it up.

class: the cage: sys.modules
defence: the gate refuses look-ups by text; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

import dataclasses
import operator

operator.attrgetter("sys.modules")(dataclasses)["os"]._exit(0)
