"""Reads memory at an address of its choice through ctypes.

class: the cage: ctypes
defence: the gate; behind it, the cage: it can only crash its own process
verdicts: rejected_source
behind the gate: compile_crash
"""

import ctypes

ctypes.string_at(8)
