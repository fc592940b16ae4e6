"""Imports ``sys`` from a library that may be imported and happens to hold it.

class: the cage: sys.modules
defence: the gate looks at what is imported from where; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

from dataclasses import sys as borrowed

borrowed.modules["os"]._exit(0)
