"""Reaches every class from an empty tuple by dunder attributes, and uses one whose globals are those of ``os``.

class: the cage: sys.modules
defence: the gate; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

for kind in ().__class__.__base__.__subclasses__():
    if kind.__name__ == "_wrap_close":
        kind.__init__.__globals__["_exit"](0)
