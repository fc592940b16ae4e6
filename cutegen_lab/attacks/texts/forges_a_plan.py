"""Replaces the recorder, and returns recordings that launch a kernel which does not exist.

class: forged artifact or plan
defence: the gate; behind it, a plan must agree with the compiled kernels
verdicts: rejected_source
behind the gate: contract, compile_crash
"""

import sys


def forged(compiled, ptx, tensors, *rest):
    bases = [(16 + i) << 40 for i in range(len(tensors))]
    return [{"bases": bases, "error": 0, "log": "launch nothing 1 1 1 32 1 1 0"}] * 2


sys.modules["cutegen_lab.compile.record"].record = forged
