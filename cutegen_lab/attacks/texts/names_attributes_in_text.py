"""Names a forbidden attribute in a string, and has an allowed library look it up.

class: the cage: sys.modules
defence: the gate refuses functions that look names up by text; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

import dataclasses
import operator

operator.attrgetter("sys.modules")(dataclasses)["os"]._exit(0)
