"""Whether the blocks of a plan are independent, so that a sample of them may be run."""

from __future__ import annotations

import re

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.ptx_text import code

# Operations on memory that other blocks can access: atom and red without .shared, and cp.reduce.async.bulk.
_TOGETHER = re.compile(r"\b(?:(?:atom|red)\b(?!\S*\.shared)|cp\.reduce\.)\S*")


def why_not_alone(build: Build) -> str:
    """Why the blocks of a plan depend on each other; empty if each needs only the inputs.

    Blocks that communicate by plain loads and stores are not found here: they hang when a sample runs.
    """
    if len(build.plan.launches) != 1:
        return f"it has {len(build.plan.launches)} launches, and each may read what all blocks of earlier ones wrote"
    if found := _TOGETHER.search(code(build.ptx)):
        return f"its blocks combine results by atomics or reductions (`{found[0].rstrip(';')}`)"
    return ""
