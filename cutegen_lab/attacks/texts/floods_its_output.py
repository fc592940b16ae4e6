"""Prints until a disk, a log or a browser is full. The gate has nothing against printing.

class: the cage: output flood
defence: what a build may print is bounded
verdicts: compile_limit
behind the gate: compile_limit
"""

while True:
    print("x" * (1 << 20))
