"""What a generated module says of its configs, without the DSL."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock, patch

_DSL = ("cuda", "cuda.bindings", "cuda.bindings.driver", "cutlass")


def constraints_of(text: str) -> Callable[..., Any]:
    """The module's ``constraints(config, workload, device)``."""
    imported = {line.split()[1] for line in text.splitlines() if line.startswith(("import cutlass", "from cutlass"))}
    stubs = {name: MagicMock() for name in (*_DSL, *imported)}
    namespace = dict[str, Any]()
    with patch.dict(sys.modules, stubs):
        exec(text, namespace)  # noqa: S102 - our own text
    found: Callable[..., Any] = namespace["constraints"]
    return found
