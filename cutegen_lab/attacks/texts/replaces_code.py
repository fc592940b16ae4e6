"""Gives the function that hands out what was compiled another function's code: whoever holds it runs the new one.

class: the cage: patched compiler
defence: the gate; behind it, a cubin must hold the kernels its PTX declares
verdicts: rejected_source
behind the gate: contract, compile_crash
"""

import sys


def forged(compiled):
    return compiled.artifacts.PTX, b"\x7fELF and so on"


sys.modules["cutegen_lab.compile.dsl"].ptx_and_cubin.__code__ = forged.__code__
