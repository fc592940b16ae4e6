"""Replaces the code of the function that returns the PTX and the cubin: every reference to the function then runs the
new code.

class: the cage: patched compiler
defence: the gate; behind it, a cubin must contain the kernels that its PTX declares
verdicts: rejected_source
behind the gate: contract, compile_crash
"""

import sys


def forged(compiled):
    return compiled.artifacts.PTX, b"\x7fELF and so on"


sys.modules["cutegen_lab.compile.dsl"].ptx_and_cubin.__code__ = forged.__code__
