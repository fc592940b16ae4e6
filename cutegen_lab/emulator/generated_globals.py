"""The global names of generated code, among them functions registered by :func:`runtime`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

RUNTIME: dict[str, Any] = {"np": np, "f32": np.float32, "f64": np.float64, "f16": np.float16, "u8": np.uint8,
                           "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "i8": np.int8, "i16": np.int16,
                           "i32": np.int32, "i64": np.int64}  # fmt: skip


def runtime(function: F) -> F:
    """Makes a function callable from generated code by its own name."""
    RUNTIME[function.__name__] = function
    return function
