"""Whether some blocks of a plan compute what they compute beside all the others."""

from __future__ import annotations

import re

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.ptx_text import code

# PTX ISA, atom, red and cp.reduce.async.bulk: on memory of other blocks unless they say otherwise.
_TOGETHER = re.compile(r"\b(?:(?:atom|red)\b(?!\S*\.shared)|cp\.reduce\.)\S*")


def why_not_alone(build: Build) -> str:
    """Why its blocks depend on each other; nothing where each has all that it needs from its inputs.

    Blocks that only write and read flags would wait for each other: the emulator tells by running them.
    """
    if len(build.plan.launches) != 1:
        return f"it takes {len(build.plan.launches)} launches, and each reads what all blocks of those before it wrote"
    if found := _TOGETHER.search(code(build.ptx)):
        return f"its blocks add up in global memory (`{found[0].rstrip(';')}`)"
    return ""
