"""The compile cage: candidate text in, an artifact of plain data (or a verdict) out.

A candidate's Python runs only in a child process without keys, network, GPU or writable disk. What comes back is JSON
that is checked before use. ``CageCompiler`` implements :class:`cutegen_lab.core.protocols.Compiler`.
"""

from cutegen_lab.compile.compiler import CageCompiler, CompileJob
from cutegen_lab.compile.limits import Limits

__all__ = ["CageCompiler", "CompileJob", "Limits"]
