"""Writes outside its folder: a module that the next import would find.

class: the cage: files
defence: the gate; behind it, everything except one folder in memory is read-only
verdicts: rejected_source
behind the gate: compile_error
"""

with open("/var/tmp/cutegen-planted.py", "w") as file:
    file.write("cheat = True")
