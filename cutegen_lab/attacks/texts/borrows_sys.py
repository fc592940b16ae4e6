"""Imports ``sys`` from an allowed library, which has imported it.

class: the cage: sys.modules
defence: the gate checks which names are imported from which module; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

from dataclasses import sys as borrowed

borrowed.modules["os"]._exit(0)
