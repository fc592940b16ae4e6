"""Prints until a disk, a log or a browser is full. The gate allows print().

class: the cage: output flood
defence: the output of a build is limited
verdicts: compile_limit
behind the gate: compile_limit
"""

while True:
    print("x" * (1 << 20))
