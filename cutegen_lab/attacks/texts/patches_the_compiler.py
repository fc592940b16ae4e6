"""Replaces ``cute.compile`` itself, which the cage is about to call.

class: the cage: patched compiler
defence: the gate; behind it, what the replacement returns is checked like any other result
verdicts: rejected_source
behind the gate: contract, compile_error
"""

import cutlass.cute as compiler

compiler.compile = lambda *arguments, **options: "compiled"
