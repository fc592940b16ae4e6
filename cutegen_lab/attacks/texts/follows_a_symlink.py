"""Makes a link in its own folder to a file outside, and reads and writes through it.

class: the cage: symlinks
defence: the gate; behind it, Landlock judges where a link leads
verdicts: rejected_source
behind the gate: compile_error
"""

import os

os.symlink("/etc/passwd", "mine")
with open("mine", "r+") as file:
    raise ValueError(file.read())
