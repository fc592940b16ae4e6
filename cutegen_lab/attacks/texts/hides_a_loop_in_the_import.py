"""Loops forever while it is imported.

class: the cage: endless work
defence: the cage's time limits
verdicts: compile_timeout, compile_limit
behind the gate: compile_timeout, compile_limit
"""

while True:
    pass
