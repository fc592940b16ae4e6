"""Checks that a cubin is what its PTX assembles to.

The PTX is assembled again in a process that never ran the candidate. Otherwise a compiler that the candidate patched
could return one kernel's PTX with another's cubin: the emulator would judge the first, and a GPU run the second.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

MAX_PTX_BYTES = 6 << 20  # maximum bytes of PTX, as quoted text, in one message to the compile server
_DEBUG = (".debug", ".nv_debug", ".rela.debug", ".rel.debug", ".rela.nv_debug", ".rel.nv_debug", ".note")


def batches(texts: Sequence[str], chosen: Sequence[int]) -> list[list[int]]:
    """The indices ``chosen`` of ``texts``, divided into parts that fit a message. Raises ValueError for a text that
    does not fit."""
    found: list[list[int]] = []
    room = 0
    for at in chosen:
        size = len(json.dumps(texts[at])) + 1
        if size > MAX_PTX_BYTES:
            raise ValueError(f"{size >> 20} MiB of PTX, over {MAX_PTX_BYTES >> 20} MiB")
        if size > room:
            found.append([])
            room = MAX_PTX_BYTES
        found[-1].append(at)
        room -= size
    return found


def objection(cubin: bytes, assembled: bytes) -> str:
    """Why ``cubin`` is not what its PTX ``assembled`` to; empty if it is."""
    try:
        different = differences(cubin, assembled)
    except ValueError as error:
        return f"the build's answer is malformed: {error}"
    if not different:
        return ""
    parts = f"{', '.join(different[:3])}{' and more' if len(different) > 3 else ''}"
    return f"the cubin is not what its PTX assembles to: {parts} differ"


def differences(cubin: bytes, assembled: bytes) -> list[str]:
    """Names of the parts that differ in more than debug information. Raises ValueError for a file that is not ELF."""
    ours, theirs = _parts(assembled), _parts(cubin)
    return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))


def _parts(cubin: bytes) -> Mapping[str, object]:
    """Contents and header of every section by name, and the file's flags. Offsets in file and segments, and numbers of
    sections and symbols, depend on debug information and are left out."""
    found: dict[str, object] = {}
    try:
        elf = ELFFile(io.BytesIO(cubin))
        for number, section in enumerate(elf.iter_sections()):
            if section.name.startswith(_DEBUG):
                continue
            name = section.name if section.name not in found else f"{section.name} ({number})"
            data = b"" if section["sh_type"] == "SHT_NOBITS" else section.data()
            # The highest byte of a kernel's sh_info is its number of registers; the others are the number of a symbol.
            header = [
                section[key] for key in ("sh_type", "sh_flags", "sh_size", "sh_addralign", "sh_entsize", "sh_addr")
            ]
            found[name] = (*header, section["sh_info"] >> 24, data)
        return {**found, "header": (elf["e_flags"], elf["e_machine"], elf["e_type"])}
    except (ELFError, KeyError, ValueError, OverflowError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"the cubin cannot be read: {type(error).__name__}: {error}") from None
