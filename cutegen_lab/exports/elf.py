"""Relocatable ELF objects that hold read-only data (System V ABI, chapter 4: Object Files)."""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping

MACHINES: Mapping[str, int] = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64

_HEADER, _SECTION, _SYMBOL = 64, 64, 24  # bytes of Elf64_Ehdr, Elf64_Shdr, Elf64_Sym
_ALIGNMENT = 64
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC = 2  # SHF_ALLOC alone: read-only
_GLOBAL_OBJECT = 1 << 4 | 1  # STB_GLOBAL, STT_OBJECT
_RODATA = 1  # index of the section


def data_object(data: Mapping[str, bytes], machine: str = "") -> bytes:
    """An object file that defines one global symbol for each item of ``data``, its bytes aligned to 64. ``machine``: a
    key of :data:`MACHINES`; this machine's by default."""
    code = MACHINES[machine or platform.machine()]
    contents, symbols, names = bytearray(), bytearray(_SYMBOL), bytearray(1)
    for name, value in data.items():
        contents.extend(bytes(-len(contents) % _ALIGNMENT))
        symbols += struct.pack("<IBBHQQ", len(names), _GLOBAL_OBJECT, 0, _RODATA, len(contents), len(value))
        names += name.encode() + b"\0"
        contents += value
    sections = {  # (type, flags, contents, link, info, alignment, entry size)
        "": (0, 0, b"", 0, 0, 0, 0),
        ".rodata": (_PROGBITS, _ALLOC, bytes(contents), 0, 0, _ALIGNMENT, 0),
        ".symtab": (_SYMTAB, 0, bytes(symbols), 3, 1, 8, _SYMBOL),
        ".strtab": (_STRTAB, 0, bytes(names), 0, 0, 1, 0),
        ".note.GNU-stack": (_PROGBITS, 0, b"", 0, 0, 1, 0),
        ".shstrtab": (_STRTAB, 0, b"", 0, 0, 1, 0),
    }
    section_names = b"".join(name.encode() + b"\0" for name in sections)
    body, table, named = bytearray(), bytearray(), 0
    for name, (kind, flags, value, link, info, alignment, size) in sections.items():
        value = section_names if name == ".shstrtab" else value
        body.extend(bytes(-(_HEADER + len(body)) % max(alignment, 1)))
        offset = _HEADER + len(body) if kind else 0
        table += struct.pack("<IIQQQQIIQQ", named, kind, flags, 0, offset, len(value), link, info, alignment, size)
        body += value
        named += len(name) + 1
    body.extend(bytes(-len(body) % 8))
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)  # 64 bits, little-endian, version 1
    header = identity + struct.pack(
        "<HHIQQQIHHHHHH", 1, code, 1, 0, 0, _HEADER + len(body), 0, _HEADER, 0, 0, _SECTION, len(sections),
        len(sections) - 1,
    )  # fmt: skip
    return header + bytes(body) + bytes(table)
