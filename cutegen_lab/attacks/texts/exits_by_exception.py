"""Raises SystemExit with exit status 0 while it is imported. The gate allows raise statements.

class: the cage: os._exit
defence: an end without an answer is a crash
verdicts: compile_crash
behind the gate: compile_crash
"""

raise SystemExit(0)
