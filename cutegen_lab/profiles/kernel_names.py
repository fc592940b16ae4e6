"""Short kernel names for tables and plots: the DSL's names contain the types of all arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MANGLED = re.compile(r"(?:kernel_)?cutlass_(?P<name>\w*?kernel|[a-zA-Z0-9]+)(?:_|$)")
_MOST = 40  # maximum length of a name that is not the DSL's; longer ones are cut


def short_names(names: Iterable[str]) -> dict[str, str]:
    """A short name for each kernel: its function's, with a number from the second kernel of that name on."""
    found: dict[str, str] = {}
    for name in names:
        if name not in found:
            match = _MANGLED.match(name)
            short = match["name"] if match else name[:_MOST]
            taken = sum(other == short or other.startswith(f"{short}#") for other in found.values())
            found[name] = f"{short}#{taken + 1}" if taken else short
    return found
