"""Takes 64 GiB of memory while it is imported. The gate has nothing against bytes.

class: the cage: output flood
defence: what a build may allocate is bounded
verdicts: compile_limit
behind the gate: compile_limit
"""

hoard = bytearray(64 << 30)
