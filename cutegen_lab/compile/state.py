"""Variables of a GPU module: memory that outlives a launch and is covered by no plan, poison or bounds check.

A kernel that counts its calls there, or stores an answer, could be right only while it is checked. Memory that a
candidate needs between launches of one call it declares by ``workspace()``. PTX ISA 9.0, §5.1.4 (global state space):
inline assembly can declare such a variable within a function too.
"""

from __future__ import annotations

import io
import re

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from cutegen_lab.core import ptx_text

# ``.global`` as a word declares a variable, except after ``.ptr``, where it is a parameter's address space.
_DECLARATION = re.compile(r"(?<![\w.])(?<!\.ptr )\.global(?!\w)(?: \.\w{1,20}(?: \d{1,9})?){0,4} ?(?P<name>[\w$]*)")

_FORMAT = re.compile(r"printfFormat_\d+")


def module_variables(cubin: bytes, ptx: str) -> tuple[str, ...]:
    """Names of global variables that the cubin holds or the PTX declares. Raises ValueError if these are not an ELF
    file and PTX."""
    words = " ".join(ptx_text.code(ptx).split())
    found = [match["name"] or "a variable without a name" for match in _DECLARATION.finditer(words)]
    try:
        elf = ELFFile(io.BytesIO(cubin))
        names = {i: section.name for i, section in enumerate(elf.iter_sections())}
        sized = {s.name for s in elf.iter_sections() if s["sh_size"]}
        symbols = elf.get_section_by_name(".symtab")
        for symbol in symbols.iter_symbols() if isinstance(symbols, SymbolTableSection) else ():
            section = names.get(symbol["st_shndx"], "") if isinstance(symbol["st_shndx"], int) else ""
            if section.startswith(".nv.global") and symbol["st_info"]["type"] == "STT_OBJECT":
                found.append(symbol.name)
        if not found:
            found += sorted(name for name in sized if name.startswith(".nv.global"))
    except (ELFError, KeyError, UnicodeDecodeError, OverflowError, AttributeError, TypeError) as error:
        raise ValueError(f"the cubin cannot be read: {type(error).__name__}: {error}") from None
    return tuple(dict.fromkeys(found))


def print_format(name: str) -> bool:
    """Whether the compiler gives such a name to the variable of a printf's format. A kernel with this variable must not
    be accepted, since a candidate can use the name too."""
    return _FORMAT.fullmatch(name) is not None
