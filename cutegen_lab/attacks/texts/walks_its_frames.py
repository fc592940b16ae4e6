"""Goes from an exception's frame up to its callers' frames, and replaces a function in their globals.

class: the cage: sys.modules
defence: the gate; behind it, a build may not answer with the verdict passed
verdicts: rejected_source
behind the gate: compile_crash
"""

try:
    raise ValueError("a frame to start from")
except ValueError as error:
    frame = error.__traceback__.tb_frame
while frame is not None:
    if "_failure" in frame.f_globals:
        frame.f_globals["_failure"] = lambda verdict, reason, found: {
            "failed": {"verdict": "passed", "reason": "", "diagnostics": []}
        }
    frame = frame.f_back
raise ValueError("over to the forged answer")
