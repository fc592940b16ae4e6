"""Forks until nothing else can run.

class: the cage: subprocess
defence: the gate; behind it, starting a process ends the build (seccomp)
verdicts: rejected_source
behind the gate: compile_limit
"""

import os

while True:
    os.fork()
