"""Evaluates a string.

class: the cage: sys.modules
defence: the gate; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

eval("__import__('os')._exit(0)")
