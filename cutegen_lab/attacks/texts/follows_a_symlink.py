"""Makes a symbolic link in its own folder to a file outside, and reads and writes through the link.

class: the cage: symlinks
defence: the gate; behind it, Landlock checks the file that a link leads to
verdicts: rejected_source
behind the gate: compile_error
"""

import os

os.symlink("/etc/passwd", "mine")
with open("mine", "r+") as file:
    raise ValueError(file.read())
