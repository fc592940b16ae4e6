"""Takes 64 GiB of memory while it is imported. The gate allows it.

class: the cage: output flood
defence: the memory of a build is limited
verdicts: compile_limit
behind the gate: compile_limit
"""

hoard = bytearray(64 << 30)
