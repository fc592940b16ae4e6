"""Special registers that a kernel may read: its position in the grid, and nothing that differs from run to run.

PTX ISA 10 "Special Registers". A clock, the number of a grid or multiprocessor, or values set by a driver or profiler
could tell a timed run from a checked one. The machine code is that of the PTX (:mod:`cutegen_lab.compile.reassemble`),
so the registers that it reads (S2R, CS2R) need no list of their own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from cutegen_lab.core import ptx_text
from cutegen_lab.core.artifact import SourceLine

ALLOWED = {
    "tid", "ntid", "laneid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
    "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster", "lanemask_eq", "lanemask_le", "lanemask_lt",
    "lanemask_ge", "lanemask_gt", "dynamic_smem_size",
}  # fmt: skip
_KNOWN = re.compile(
    r"n?warpid|n?smid|gridid|clock(_hi|64)?|pm\d+(_64)?|globaltimer(_lo|_hi)?|envreg\d+|total_smem_size"
    r"|aggr_smem_size|current_graph_exec|reserved_smem_\w+"
)  # no register may be declared with these names
_NAME = re.compile(r"%([A-Za-z_$][\w$]*)")
_DECLARED = re.compile(r"\.reg\b([^;]{0,4000});")  # bounded look-ahead, since the text is untrusted
_DECLARATION = re.compile(r"%([A-Za-z_$][\w$]*)\s*(?:<\s*(\d{1,9})\s*>)?")


def objection(ptx: str, lines: Sequence[SourceLine]) -> str:
    """A message that names the first forbidden register that a kernel reads, and the candidate's line; empty if there
    is none. Raises PtxError."""
    code = ptx_text.code(ptx)
    declared = [match for part in _DECLARED.finditer(code) for match in _DECLARATION.finditer(part[1])]
    single = {match[1] for match in declared if match[2] is None}
    counts: dict[str, int] = {}
    for match in declared:
        if match[2] is not None:
            counts[match[1]] = max(counts.get(match[1], 0), int(match[2]))
    starts = [line.ptx_line for line in lines]
    seen: set[str] = set()
    for match in _NAME.finditer(code):
        name = match[1]
        if name in seen or name in ALLOWED:
            continue
        seen.add(name)
        if _KNOWN.fullmatch(name) or not (name in single or name in counts or _numbered(name, counts)):
            at = bisect_right(starts, code.count("\n", 0, match.start()) + 1) - 1
            where = f"line {lines[at].line} reads" if at >= 0 else "a kernel reads"
            return (
                f"{where} the special register %{name}: a kernel may read its position in the grid, but not when, "
                "how or on what it runs. Remove this; if blocks take work in turn, count in a workspace tensor"
            )
    return ""


def _numbered(name: str, counts: dict[str, int]) -> bool:
    """Whether ``name`` is one of the registers that a declaration such as ``%r<40>`` makes."""
    prefix = name.rstrip("0123456789")
    digits = name[len(prefix) :]
    return bool(digits) and len(digits) < 10 and int(digits) < counts.get(prefix, 0)
