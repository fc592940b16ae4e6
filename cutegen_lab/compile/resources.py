"""Registers, shared memory, stack and spills of each kernel, read from the cubin.

A cubin is an ELF file. ``.nv.info`` (whole module) holds records that name a function by symbol index; the register
count is also in the section header of ``.text.<kernel>`` (bits 24–31 of ``sh_info``). Attribute numbers are those that
``cuobjdump -elf`` prints, checked in the tests against ``cuobjdump -res-usage``.

A cubin holds no spill count: ``local_bytes``, the exact size of a thread's stack frame, covers register spills and
dynamically indexed register arrays alike. Spill bytes are from ptxas's remark if it made one for a frame of this size,
otherwise an upper bound: the frame without the ``.local`` memory that the PTX declares.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Mapping

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from cutegen_lab.compile.ptx import Entry
from cutegen_lab.compile.remarks import StackUse
from cutegen_lab.core import ptx_text
from cutegen_lab.core.artifact import KernelInfo

EIATTR_FRAME_SIZE = 0x11
EIATTR_REGCOUNT = 0x2F
_FORMAT_SIZED = 4  # (format, attribute, size, payload); formats 1 to 3 carry a two-byte value in place of the size
_LOCAL = re.compile(r"^[ \t]*\.local\b[^\[\n]{0,400}\[(\d{1,9})\]", re.M)


def read_resources(
    cubin: bytes, ptx: str, entries: tuple[Entry, ...], remarked: Mapping[str, StackUse] | None = None
) -> tuple[KernelInfo, ...]:
    """One :class:`KernelInfo` for each PTX entry. Raises ValueError for a cubin that is not ELF or lacks a kernel."""
    try:
        elf = ELFFile(io.BytesIO(cubin))
        sections = {section.name: section for section in elf.iter_sections()}
        symbols = sections.get(".symtab")
        names = [s.name for s in symbols.iter_symbols()] if isinstance(symbols, SymbolTableSection) else []
        frames: dict[str, int] = {}
        registers: dict[str, int] = {}
        info = sections.get(".nv.info")
        for attribute, payload in _records(info.data() if info is not None else b""):
            if attribute in (EIATTR_FRAME_SIZE, EIATTR_REGCOUNT) and len(payload) >= 8:
                index, value = struct.unpack_from("<II", payload)
                if index < len(names):
                    (frames if attribute == EIATTR_FRAME_SIZE else registers)[names[index]] = value
        declared_local = _local_bytes(ptx, entries)
        result = []
        for entry in entries:
            text = sections.get(f".text.{entry.name}")
            if text is None:
                raise ValueError(f"the cubin has no kernel {entry.name!r}")
            shared = sections.get(f".nv.shared.{entry.name}")
            frame = frames.get(entry.name, 0)
            spilled = max(0, frame - declared_local[entry.name])
            use = (remarked or {}).get(entry.name)
            if use is None or use.frame != frame:
                use = StackUse(frame, spilled, spilled)
            result.append(
                KernelInfo(
                    name=entry.name,
                    registers=registers.get(entry.name, (text["sh_info"] >> 24) & 0xFF),
                    spill_store_bytes=use.spill_stores,
                    spill_load_bytes=use.spill_loads,
                    static_smem_bytes=shared["sh_size"] if shared is not None else 0,
                    local_bytes=frame,
                    param_sizes=tuple(p.size for p in entry.params),
                )
            )
        return tuple(result)
    except (ELFError, struct.error, KeyError, UnicodeDecodeError, OverflowError, AttributeError, TypeError) as error:
        raise ValueError(f"the cubin cannot be read: {type(error).__name__}: {error}") from None


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, offset)
        offset += 4
        if form == _FORMAT_SIZED:
            yield attribute, data[offset : offset + size]
            offset += size


def _local_bytes(ptx: str, entries: tuple[Entry, ...]) -> dict[str, int]:
    """Bytes of ``.local`` memory that each kernel's PTX declares."""
    ptx = ptx_text.code(ptx)
    starts = [(ptx.find(f".entry {e.name}"), e.name) for e in entries]
    ends = [*(start for start, _ in starts[1:]), len(ptx)][: len(starts)]
    return {
        name: sum(int(m[1]) for m in _LOCAL.finditer(ptx[max(start, 0) : end]))
        for (start, name), end in zip(starts, ends, strict=True)
    }
