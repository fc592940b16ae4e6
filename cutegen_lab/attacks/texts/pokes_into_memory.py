"""Reads memory at an address of its choice through ctypes.

class: the cage: ctypes
defence: the gate; behind it, a process of its own: what it breaks is itself
verdicts: rejected_source
behind the gate: compile_crash
"""

import ctypes

ctypes.string_at(8)
