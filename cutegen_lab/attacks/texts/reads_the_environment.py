"""Looks for keys and tokens in the environment, and returns them in an error message.

class: the cage: environment
defence: the gate; behind it, a process that was started without the parent's environment
verdicts: rejected_source
behind the gate: compile_error
"""

import os

found = {name: value for name, value in os.environ.items() if "KEY" in name or "TOKEN" in name}
raise ValueError(f"found {found}")
