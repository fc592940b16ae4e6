"""Texts as they were last read and accepted: ``pytest … --accept`` writes them anew, to be reviewed as a diff."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
SHOWN = 60  # lines of a difference


def check_accepted(path: Path, text: str, config: pytest.Config) -> None:
    """Fails with the difference if ``text`` is not what ``path`` holds; with ``--accept`` writes it there."""
    accepted = path.read_text() if path.exists() else ""
    if text == accepted:
        return
    if config.getoption("--accept"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"wrote {path}")
        return
    lines = list(difflib.unified_diff(accepted.splitlines(), text.splitlines(), "accepted", "now", lineterm="", n=2))
    more = [f"… {len(lines) - SHOWN} lines more"] if len(lines) > SHOWN else []
    pytest.fail("\n".join([f"{path.name} differs; --accept writes it anew", *lines[:SHOWN], *more]), pytrace=False)


def check_no_other(pattern: str, names: set[str], config: pytest.Config) -> None:
    """Fails if a file of ``GOLDEN`` that matches ``pattern`` has none of the ``names``; ``--accept`` removes it."""
    stale = [path for path in GOLDEN.glob(pattern) if path.stem not in names]
    for path in stale if config.getoption("--accept") else ():
        path.unlink()
        print(f"removed {path}")
    assert not [path.name for path in stale if path.exists()], "no case writes these: --accept removes them"
