"""Starts another program, which would outlive the build.

class: the cage: subprocess
defence: the gate; behind it, starting a process ends the build (seccomp)
verdicts: rejected_source
behind the gate: compile_limit
"""

import subprocess

subprocess.run(["/bin/true"])
