"""Replaces the function that returns the PTX and the cubin, and returns another cubin.

class: the cage: patched compiler
defence: the gate; behind it, a cubin must contain the kernels that its PTX declares
verdicts: rejected_source
behind the gate: contract, compile_crash
"""

import sys

insides = sys.modules["cutegen_lab.compile.dsl"]
honestly = insides.ptx_and_cubin
insides.ptx_and_cubin = lambda compiled: (honestly(compiled)[0], b"\x7fELF and so on")
