"""Hashes of text, bytes and plain data."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sha256(data: str | bytes) -> str:
    """Hex SHA-256 of text (UTF-8) or bytes."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON that is equal for equal values: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
