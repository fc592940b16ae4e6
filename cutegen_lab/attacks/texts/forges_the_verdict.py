"""Replaces the function that reports a failure by one that reports the verdict passed, then fails.

class: the cage: sys.modules
defence: the gate; behind it, a build may not answer with the verdict passed
verdicts: rejected_source
behind the gate: compile_crash
"""

import sys

sys.modules["__main__"].__dict__.clear()
sys.modules["cutegen_lab.compile.child"]._failure = lambda verdict, reason, found: {
    "failed": {"verdict": "passed", "reason": "", "diagnostics": []}
}
raise ValueError("over to the forged answer")
