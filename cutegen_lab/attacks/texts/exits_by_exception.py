"""Raises SystemExit with success while it is imported. The gate has nothing against raising.

class: the cage: os._exit
defence: an end without an answer is a crash
verdicts: compile_crash
behind the gate: compile_crash
"""

raise SystemExit(0)
