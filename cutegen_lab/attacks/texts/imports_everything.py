"""Imports all names of one of the compiler's modules, ``os`` among them.

class: the cage: sys.modules
defence: the gate refuses star imports; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

from cutlass.base_dsl.compiler import *

os._exit(0)
