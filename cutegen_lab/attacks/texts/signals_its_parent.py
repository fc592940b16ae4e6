"""Sends SIGKILL to its parent process.

class: the cage: signals
defence: the gate; behind it, a process namespace and no kill (seccomp)
verdicts: rejected_source
behind the gate: compile_error
"""

import os
import signal

os.kill(os.getppid(), signal.SIGKILL)
