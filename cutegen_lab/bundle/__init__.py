"""Joins a kernel and the modules that it imports from its own package or folder into one candidate text.

``modules`` finds and reads files; ``references`` lists what a definition refers to; ``reach`` follows references from
the entry and finds those that a candidate may not have; ``order`` sorts definitions before their uses; ``naming`` makes
names unique; ``writing`` edits the original text and joins it. The files are parsed, never executed.
"""

from cutegen_lab.bundle.bundle import Bundle, bundle

__all__ = ["Bundle", "bundle"]
