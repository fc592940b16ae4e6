"""Ends the process with exit status 0 before there is a result.

class: the cage: os._exit
defence: the gate; behind it, an end without an answer is a crash
verdicts: rejected_source
behind the gate: compile_crash
"""

import os

os._exit(0)
