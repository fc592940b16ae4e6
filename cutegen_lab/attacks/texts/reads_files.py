"""Reads the analyst's files: another candidate's answer, or a key.

class: the cage: files
defence: the gate; behind it, Landlock: only the compiler's own files can be read
verdicts: rejected_source
behind the gate: compile_error
"""

from pathlib import Path

raise ValueError(Path("/etc/passwd").read_text() + str(list(Path("/root").iterdir())))
