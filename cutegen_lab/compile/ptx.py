"""Parameters of a kernel's PTX, and which of their bytes the kernel can see.

PTX ISA 9.0, §5.1.6 (parameter state space) and §9.7.9.8 (ld). Bytes that no ``ld.param`` reads, of a parameter whose
address is never taken, are padding: their values cannot matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutegen_lab.core import ptx_text

DESCRIPTOR_BYTES = 128  # a TMA descriptor passed by value
# The launcher does not write the second half of a descriptor, and hardware does not read it.
DESCRIPTOR_LIVE_BYTES = 64

# Look-ahead is bounded, since the text is untrusted.
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^(){};]*)\))?")
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>[a-z]+)(?P<bits>\d+)\s+"
    r"(?:\.ptr\s+(?:\.\w+\s+){0,2}(?:\.align\s+\d+\s+)?)?(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?"
)
_LOAD = re.compile(
    r"ld\.param(?:::\w+)?(?:\.v(?P<lanes>[248]))?\.[a-z]+(?P<bits>\d+)(?:x2)?\s+[^\[]{0,400}"
    r"\[(?P<name>[\w$]+)(?:\+(?P<offset>\d+))?\]"
)
_WORD = re.compile(r"[\w$]+")


@dataclass(frozen=True)
class Param:
    """One kernel parameter."""

    name: str
    """Name in the PTX."""
    size: int
    """Size in bytes."""
    align: int
    """Alignment in bytes."""
    live: bytes
    """For each byte, 1 if it can influence the kernel, otherwise 0."""
    is_descriptor: bool
    """Whether it is a TMA descriptor."""


@dataclass(frozen=True)
class Entry:
    """One kernel of a PTX module."""

    name: str
    """Name of the kernel."""
    params: tuple[Param, ...]
    """Its parameters, in order."""


def entries(ptx: str) -> tuple[Entry, ...]:
    """Every kernel of a PTX module, in order. Raises PtxError."""
    ptx = ptx_text.code(ptx)
    found = list(_ENTRY.finditer(ptx))
    ends = [*(m.start() for m in found[1:]), len(ptx)][: len(found)]
    result = []
    for match, end in zip(found, ends, strict=True):
        body = ptx[match.end() : end]
        declared = [p for p in map(_PARAM.search, (match[2] or "").split(",")) if p]
        names = {p["name"] for p in declared}
        loads, escaped = _uses(body, names)
        result.append(Entry(match[1], tuple(_param(p, loads, escaped, body) for p in declared)))
    return tuple(result)


def _uses(body: str, names: set[str]) -> tuple[dict[str, list[tuple[int, int]]], set[str]]:
    """Byte ranges loaded of each parameter, and the parameters whose address is taken."""
    loads: dict[str, list[tuple[int, int]]] = {}
    escaped: set[str] = set()
    for line in body.splitlines():
        if "_param_" not in line and not names.intersection(_WORD.findall(line)):
            continue
        match = _LOAD.search(line)
        if match and match["name"] in names:
            size = int(match["bits"]) // 8 * int(match["lanes"] or 1)
            start = int(match["offset"] or 0)
            loads.setdefault(match["name"], []).append((start, start + size))
        else:
            escaped.update(names.intersection(_WORD.findall(line)))
    return loads, escaped


def _param(match: re.Match[str], loads: dict[str, list[tuple[int, int]]], escaped: set[str], body: str) -> Param:
    name = match["name"]
    size = int(match["bits"]) // 8 * int(match["count"] or 1)
    align = int(match["align"] or size)
    is_descriptor = (
        name in escaped and size == DESCRIPTOR_BYTES and align >= 64 and ("tensormap" in body or ".tensor." in body)
    )
    live = bytearray(size)
    if is_descriptor:
        live[:DESCRIPTOR_LIVE_BYTES] = b"\x01" * DESCRIPTOR_LIVE_BYTES
    elif name in escaped:
        live[:] = b"\x01" * size
    for start, end in loads.get(name, ()):
        live[start : min(end, size)] = b"\x01" * max(0, min(end, size) - start)
    return Param(name, size, align, bytes(live), is_descriptor)
