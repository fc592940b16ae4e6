"""The extension's default shortcuts, beside JupyterLab's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LABS = Path(sys.prefix) / "share/jupyter/lab/schemas"


def shortcuts(folder: Path) -> list[dict[str, object]]:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("*.json")]
    return [each for schema in found for each in schema.get("jupyter.lab.shortcuts", [])]


def test_no_default_shortcut_is_one_of_jupyterlab() -> None:
    if not LABS.exists():
        pytest.skip("JupyterLab's schemas are not installed below this Python")
    ours = {tuple(each["keys"]): each["command"] for each in shortcuts(ROOT / "labextension/schema")}  # type: ignore[arg-type]
    taken = {
        tuple(each.get(name) or ())  # type: ignore[arg-type]
        for each in shortcuts(LABS)
        for name in ("keys", "winKeys", "macKeys", "linuxKeys")
    }
    assert len(taken) > 100
    assert sorted(ours.values()) == ["cutegen-lab:new-notebook", "cutegen-lab:show-runs"]
    assert not set(ours) & taken
