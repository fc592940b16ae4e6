"""Joins a kernel and the modules that it imports from its own package or folder into one candidate text.

``modules`` finds and reads files, ``references`` lists what a definition refers to, ``reach`` follows that from the
entry (and says what cannot come along), ``order`` puts definitions before their uses, ``naming`` gives each a name of
its own, ``writing`` edits the original text and joins it. Nothing of what is read is executed.
"""

from cutegen_lab.bundle.bundle import Bundle, bundle

__all__ = ["Bundle", "bundle"]
